import TokenVault

/// A storage that tells of each call before and after it, for what another process might do just then.
struct HookedStorage: TokenStorage {
    enum Call: Hashable, Sendable { case list, item, commit }
    enum Moment: Hashable, Sendable { case before, after }
    typealias Hook = @Sendable (Call, Moment, [TokenKey]) async throws(TokenStorageError) -> Void

    let base: any TokenStorage
    /// What a read gives in place of what is there.
    var reading: @Sendable (TokenItem?) -> TokenItem? = { $0 }
    let hook: Hook

    var service: String { base.service }
    var supportedPolicies: Set<AccessPolicy> { base.supportedPolicies }
    var defaultPolicy: AccessPolicy { base.defaultPolicy }
    func lockState() async throws(TokenStorageError) -> LockState { try await base.lockState() }
    func changes() -> TokenChanges { base.changes() }
    func deleteAll() async throws(TokenStorageError) -> Int { try await base.deleteAll() }

    func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await item(for: key)?.secret
    }
    func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await item(for: key)?.metadata
    }
    func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await hook(.item, .before, [key])
        let item = try await base.item(for: key)
        try await hook(.item, .after, [key])
        return reading(item)
    }
    func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try await hook(.list, .before, [])
        let listing = try await base.list(query)
        try await hook(.list, .after, [])
        return listing
    }
    func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try await hook(.commit, .before, changes.map(\.key))
        let commit = try await base.commit(changes)
        try await hook(.commit, .after, changes.map(\.key))
        return commit
    }
}
