internal import TokenVaultCore

/// The calls of the Secret Service API that are used, on a link.
///
/// <https://specifications.freedesktop.org/secret-service/0.2/>
extension KeyringLink {
    // MARK: - Messages

    /// Searches every collection.
    func searchMethod(_ query: TokenAttributes) -> BusMethod {
        BusMethod(
            path: BusName.secretsPath, interface: BusName.service, name: "SearchItems",
            body: make.tuple([make.attributes(query)]))
    }

    func aliasMethod(_ alias: String) -> BusMethod {
        BusMethod(
            path: BusName.secretsPath, interface: BusName.service, name: "ReadAlias",
            body: make.tuple([make.text(alias)]))
    }

    func propertiesMethod(_ path: String, of interface: String) -> BusMethod {
        BusMethod(
            path: path, interface: BusName.properties, name: "GetAll",
            body: make.tuple([make.text(interface)]))
    }

    func propertyMethod(_ path: String, _ name: String, of interface: String) -> BusMethod {
        BusMethod(
            path: path, interface: BusName.properties, name: "Get",
            body: make.tuple([make.text(interface), make.text(name)]))
    }

    func secretMethod(_ path: String, _ session: SecretSession) -> BusMethod {
        BusMethod(
            path: path, interface: BusName.item, name: "GetSecret",
            body: make.tuple([make.path(session.path)]))
    }

    func createMethod(
        in collection: String, label: String, attributes: TokenAttributes, secret: Variant, replace: Bool
    ) -> BusMethod {
        let properties = make.properties([
            ("\(BusName.item).Label", make.text(label)),
            ("\(BusName.item).Attributes", make.attributes(attributes)),
        ])
        return BusMethod(
            path: collection, interface: BusName.collection, name: "CreateItem",
            body: make.tuple([properties, secret, make.bool(replace)]))
    }

    func deleteMethod(_ path: String) -> BusMethod {
        BusMethod(path: path, interface: BusName.item, name: "Delete", body: nil)
    }

    // MARK: - Answers

    /// The paths that a search found.
    static func found(
        _ reply: BusReply
    ) throws(TokenStorageError) -> (unlocked: [String], locked: [String]) {
        let values = try values(reply, "(aoao)")
        return (values[0].texts ?? [], values[1].texts ?? [])
    }

    /// A property that was asked for.
    static func property(_ reply: BusReply) throws(TokenStorageError) -> Variant {
        guard let value = try values(reply, "(v)")[0].content else { throw unexpected }
        return value
    }

    /// The values of a reply of that type. Throws what an error of the service means.
    static func values(_ reply: BusReply, _ type: String) throws(TokenStorageError) -> Variant {
        switch reply {
        case .values(let values):
            guard values.isOf(type) else { throw unexpected }
            return values
        case .descriptor: throw unexpected
        case .error(let name, let text): throw .bus(name, text)
        }
    }

    static var unexpected: TokenStorageError {
        .secretService(.ioFailure, .keyring(.unexpectedAnswer))
    }
}
