package import TokenVault

/// A storage that tells of each call before and after it, for what another process might do just then.
package struct HookedStorage: TokenStorage {
    package enum Call: Hashable, Sendable { case list, item, commit }
    package enum Moment: Hashable, Sendable { case before, after }
    package typealias Hook = @Sendable (Call, Moment, [TokenKey]) async throws(TokenStorageError) -> Void

    package let base: any TokenStorage
    /// What a read gives in place of what is there.
    package var reading: @Sendable (TokenItem?) -> TokenItem? = { $0 }
    package let hook: Hook

    package init(
        base: any TokenStorage, reading: @escaping @Sendable (TokenItem?) -> TokenItem? = { $0 },
        hook: @escaping Hook
    ) {
        self.base = base
        self.reading = reading
        self.hook = hook
    }

    package var service: String { base.service }
    package var supportedPolicies: Set<AccessPolicy> { base.supportedPolicies }
    package var defaultPolicy: AccessPolicy { base.defaultPolicy }
    package func lockState() async throws(TokenStorageError) -> LockState { try await base.lockState() }
    package func changes() -> TokenChanges { base.changes() }
    package func deleteAll() async throws(TokenStorageError) -> Int { try await base.deleteAll() }

    package func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await item(for: key)?.secret
    }
    package func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await item(for: key)?.metadata
    }
    package func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await hook(.item, .before, [key])
        let item = try await base.item(for: key)
        try await hook(.item, .after, [key])
        return reading(item)
    }
    package func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try await hook(.list, .before, [])
        let listing = try await base.list(query)
        try await hook(.list, .after, [])
        return listing
    }
    package func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try await hook(.commit, .before, changes.map(\.key))
        let commit = try await base.commit(changes)
        try await hook(.commit, .after, changes.map(\.key))
        return commit
    }
}
