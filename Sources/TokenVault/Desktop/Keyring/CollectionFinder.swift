/// Finds the keyring that a configuration names, and makes it when it is missing and may be made.
struct CollectionFinder: KeyringPrompting {
    let service: SecretService
    let link: KeyringLink
    let call: BusCall
    /// Whether a missing one may be made, if the configuration says so too.
    let mayCreate: Bool

    /// The collection's object path. Throws `unavailable` when there is none.
    func find() throws(TokenStorageError) -> String {
        let found =
            switch service.configuration.collection {
            case .default: try defaultCollection()
            case .named(let label): try collection(labelled: label)
            }
        if let found { return found }
        guard mayCreate, service.configuration.createsCollection else { throw .noCollection(label) }
        return try create()
    }

    private var label: String? {
        if case .named(let label) = service.configuration.collection { label } else { nil }
    }

    /// What asks for the default keyring; `nil` when the configuration names another one.
    static func aliasMethod(_ service: SecretService, _ link: KeyringLink) -> BusMethod? {
        guard service.configuration.collection == .default else { return nil }
        return BusMethod(
            path: BusName.secretsPath, interface: BusName.service, name: "ReadAlias",
            body: link.make.tuple([link.make.text("default")]))
    }

    private func defaultCollection() throws(TokenStorageError) -> String? {
        guard let method = Self.aliasMethod(service, link) else { return nil }
        let path = try KeyringLink.values(try ask([method])[0], "(o)")[0].text
        return path == "/" ? nil : path
    }

    private func collection(labelled label: String) throws(TokenStorageError) -> String? {
        let all = link.propertyMethod(BusName.secretsPath, "Collections", of: BusName.service)
        let paths = (try KeyringLink.property(try ask([all])[0]).texts ?? []).sorted()
        let replies = try ask(paths.map { link.propertyMethod($0, "Label", of: BusName.collection) })
        for (path, reply) in zip(paths, replies) {
            if case .error = reply { continue }
            if Bytes.areEqual(try KeyringLink.property(reply).text, label) { return path }
        }
        return nil
    }

    private func create() throws(TokenStorageError) -> String {
        let properties = link.make.properties([
            ("\(BusName.collection).Label", link.make.text(label ?? "Default keyring"))
        ])
        let method = BusMethod(
            path: BusName.secretsPath, interface: BusName.service, name: "CreateCollection",
            body: link.make.tuple([properties, link.make.text(label == nil ? "default" : "")]))
        let values = try KeyringLink.values(try ask([method])[0], "(oo)")
        if let path = values[0].text, path != "/" { return path }
        guard let prompt = values[1].text, prompt != "/" else { throw KeyringLink.unexpected }
        guard let made = try run(prompt: prompt) else {
            var error = TokenStorageError.noCollection(label)
            error.underlying = "the prompt for a new keyring was dismissed"
            throw error
        }
        guard made.isOf("o"), let path = made.text, path != "/" else { throw KeyringLink.unexpected }
        return path
    }

    private func ask(_ methods: [BusMethod]) throws(TokenStorageError) -> [BusReply] {
        try link.connection.ask(methods, for: call)
    }
}
