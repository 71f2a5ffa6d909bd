extension KeyringAccess {
    /// The services that have items. Throws `locked`; never takes that for none.
    func services() throws(TokenStorageError) -> Set<TokenKey> {
        let paths = try paths(of: KeyringItem.everyItem)
        var services: Set<TokenKey> = []
        for (_, intent) in try commitsUnderWay(in: nil)
        where intent.outcomes.contains(where: { $0.outcome.item != nil }) {
            services.insert(TokenKey(intent.service))
        }
        var rest = paths[...]
        while !rest.isEmpty {
            let some = rest.prefix(Self.mostAtOnce)
            rest = rest.dropFirst(some.count)
            let answers = try ask(some.map { link.propertyMethod($0, "Attributes", of: BusName.item) })
            for answer in answers {
                if case .error(let name, _) = answer, BusErrorName.isNoObject(name) { continue }
                let attributes = try KeyringLink.property(answer).attributes
                if let service = KeyringItem.service(in: attributes) { services.insert(TokenKey(service)) }
            }
        }
        return services
    }
}
