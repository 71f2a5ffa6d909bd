internal import TokenVaultCore

extension KeyringAccess {
    /// The services that have items. Throws `locked` while the chosen keyring is; counts what other locked ones
    /// have, but for keys of vaults.
    func services() throws(TokenStorageError) -> ServiceListing {
        let paths =
            readsOthers
            ? try paths(of: TokenAttributes())
            : try paths(of: KeyringItem.everyItem, KeyringItem.everyWrittenItem)
        if paths.isHomeLocked { throw locked([try home]) }
        var services: Set<TokenKey> = []
        for (_, intent) in try commitsUnderWay(in: nil)
        where intent.outcomes.contains(where: { $0.outcome.item != nil }) {
            services.insert(TokenKey(intent.service))
        }
        var nameless: [String?] = []
        for (_, attributes) in try attributes(at: paths.unlocked) {
            let attributes = attributes ?? [:]
            let name = readsOthers ? KeyringItem.anyName(in: attributes) : KeyringItem.name(in: attributes)
            if let name {
                services.insert(name.service)
            } else if readsOthers, !CommitIntent.isCommit(attributes) {
                nameless.append(KeyringItem.serviceName(in: attributes))
            }
        }
        services.remove(TokenKey(SecretServiceVaultKeys.service))
        // An item with the name of a listed service counts as a part of that service.
        let unlisted = nameless.count { name in name.map { !services.contains(TokenKey($0)) } ?? true }
        let (hidden, passedOver) = try hidden(at: paths.locked, lockedCommits())
        return ServiceListing(
            services: services.sorted().map(\.name), hidden: hidden,
            hiddenReasons: hidden > 0 ? [.locked: hidden] : [:], passedOver: unlisted + passedOver)
    }

    /// How many of the items at `paths`, in locked collections, are kept from being listed, and how many are passed
    /// over. Each of `commits`, which are in locked collections too, keeps at least one from being listed.
    private func hidden(
        at paths: [String], _ commits: Set<String>
    ) throws(TokenStorageError) -> (hidden: Int, passedOver: Int) {
        if paths.isEmpty { return (commits.count, 0) }
        let keys = Set(
            try self.paths(of: KeyringItem.search(service: SecretServiceVaultKeys.service)).locked)
        let others = paths.filter { !keys.contains($0) && !commits.contains($0) }
        guard readsOthers else { return (others.count + commits.count, 0) }
        let owners = try owners(ofLocked: others).map(\.owner)
        return (owners.count { $0 != .neither } + commits.count, owners.count { $0 == .neither })
    }
}
