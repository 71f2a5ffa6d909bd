import TokenVault

/// A storage with one fault: each hook stands between a caller and a storage that has none.
struct FaultyStorage: TokenStorage {
    typealias Commit =
        @Sendable (any TokenStorage, [TokenChange]) async throws(TokenStorageError) -> TokenCommit

    var base: any TokenStorage
    var key: @Sendable (TokenKey) -> TokenKey = { $0 }
    var secret: @Sendable (Secret) -> Secret? = { $0 }
    var metadata: @Sendable (TokenMetadata) -> TokenMetadata? = { $0 }
    var listing: @Sendable (TokenListing) -> TokenListing = { $0 }
    /// What an error of a read becomes; `nil` makes it an absent key.
    var readError: @Sendable (TokenStorageError) -> TokenStorageError? = { $0 }
    var list: (@Sendable (any TokenStorage, TokenQuery) async throws(TokenStorageError) -> TokenListing)?
    var commit: Commit = { (base, changes) async throws(TokenStorageError) in
        try await base.commit(changes)
    }
    var deleteAllItems: @Sendable (any TokenStorage) async throws(TokenStorageError) -> Int = {
        (base) async throws(TokenStorageError) in try await base.deleteAll()
    }
    var changeHub: ChangeHub?
    var policies: Set<AccessPolicy>?

    var service: String { base.service }
    var supportedPolicies: Set<AccessPolicy> { policies ?? base.supportedPolicies }
    var defaultPolicy: AccessPolicy { base.defaultPolicy }

    func lockState() async throws(TokenStorageError) -> LockState { try await base.lockState() }

    func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await item(for: key)?.secret
    }

    func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        do {
            guard let item = try await base.item(for: self.key(key)), let secret = secret(item.secret),
                let metadata = metadata(item.metadata)
            else { return nil }
            return TokenItem(metadata: metadata, secret: secret)
        } catch {
            if let error = readError(error) { throw error }
            return nil
        }
    }

    func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await item(for: key)?.metadata
    }

    func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        if let list { return try await list(base, query) }
        var listing = try await base.list(query)
        listing.items = listing.items.compactMap { metadata($0) }
        return self.listing(listing)
    }

    func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        let mapped = changes.map { change in
            var change = change
            change.key = key(change.key)
            if case .rename(let target) = change.action { change.action = .rename(to: key(target)) }
            return change
        }
        let commit = try await commit(base, mapped)
        if let generation = commit.generation {
            for change in mapped { changeHub?.publish(service: service, .stored(change.key, generation)) }
        }
        return commit
    }

    func deleteAll() async throws(TokenStorageError) -> Int { try await deleteAllItems(base) }

    func changes() -> TokenChanges { changeHub?.subscribe(service: service) ?? base.changes() }
}
