internal import TokenVaultCore

/// Finds the keyring that a configuration names, and makes it when it is missing and may be made.
struct CollectionFinder: KeyringPrompting {
    let service: SecretService
    let link: KeyringLink
    let call: BusCall
    /// Whether a missing one may be made, if the configuration says so too.
    let mayCreate: Bool

    /// The collection's object path; `nil` when there is none and none may be made.
    func find() throws(TokenStorageError) -> String? {
        let found =
            switch service.configuration.collection {
            case .default: try defaultCollection()
            case .named(let label): try collection(labelled: label)
            }
        if let found { return found }
        guard mayCreate, service.configuration.createsCollection else { return nil }
        return try create(label: service.configuration.collection.label, isDefault: false)
    }

    /// What asks for the default keyring; `nil` when the configuration names another one.
    static func defaultMethod(_ service: SecretService, _ link: KeyringLink) -> BusMethod? {
        guard service.configuration.collection == .default else { return nil }
        return link.aliasMethod("default")
    }

    /// The default keyring's path; `nil` when there is none.
    func defaultCollection() throws(TokenStorageError) -> String? {
        try collection(called: "default")
    }

    private func collection(called alias: String) throws(TokenStorageError) -> String? {
        let path = try KeyringLink.values(try ask([link.aliasMethod(alias)])[0], "(o)")[0].text
        return path == "/" ? nil : path
    }

    /// The path of the keyring with that label, else of the one with that alias.
    func collection(labelled label: String) throws(TokenStorageError) -> String? {
        let all = link.propertyMethod(BusName.secretsPath, "Collections", of: BusName.service)
        let paths = (try KeyringLink.property(try ask([all])[0]).texts ?? []).sorted()
        let replies = try ask(paths.map { link.propertyMethod($0, "Label", of: BusName.collection) })
        for (path, reply) in zip(paths, replies) {
            if case .error = reply { continue }
            if Bytes.areEqual(try KeyringLink.property(reply).text, label) { return path }
        }
        // A service may report an error for a name that no alias can have.
        guard label.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else { return nil }
        return try collection(called: label)
    }

    /// Makes a keyring whose password the service asks for. The default one when it has no label of its own, or
    /// is to be that.
    func create(label: String?, isDefault: Bool) throws(TokenStorageError) -> String {
        let properties = link.make.properties([
            ("\(BusName.collection).Label", link.make.text(label ?? Self.defaultLabel))
        ])
        let alias = label == nil || isDefault ? "default" : ""
        let method = BusMethod(
            path: BusName.secretsPath, interface: BusName.service, name: "CreateCollection",
            body: link.make.tuple([properties, link.make.text(alias)]))
        let values = try KeyringLink.values(try ask([method])[0], "(oo)")
        if let path = values[0].text, path != "/" { return path }
        guard let prompt = values[1].text, prompt != "/" else { throw KeyringLink.unexpected }
        guard let made = try run(prompt: prompt) else {
            throw .secretService(.unavailable, .keyring(.creationDismissed))
        }
        guard made.isOf("o"), let path = made.text, path != "/" else { throw KeyringLink.unexpected }
        return path
    }

    static let defaultLabel = "Default keyring"

    private func ask(_ methods: [BusMethod]) throws(TokenStorageError) -> [BusReply] {
        try link.connection.ask(methods, for: call)
    }
}

extension SecretServiceConfiguration.Collection {
    /// The label that a keyring is looked for by; `nil` for the default keyring.
    var label: String? { if case .named(let label) = self { label } else { nil } }
}
