internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The session of one account in a storage: the record, and a flag beside it. The flag says that there is a
/// record, and can be read while the record is locked.
struct SessionStore: Sendable {
    let storage: any TokenStorage
    let account: String
    let policy: AccessPolicy?

    /// The key of the record.
    var key: TokenKey { Self.key(of: account) }
    /// The key of the flag.
    var flagKey: TokenKey { Self.flagKey(of: account) }

    private static let records = "auth/session/"
    private static let flags = "auth/signed-in/"

    /// Throws `storage` with `invalidKey` for an account that is empty or too long.
    func checkAccount() throws(TokenError) {
        guard (1...1_000).contains(account.utf8.count) else {
            throw .storage(
                TokenStorageError(
                    .invalidKey, operation: "sign in", backend: "auth", reason: .limit(.account)))
        }
    }

    /// Returns the stored session; `nil` when the account is signed out.
    func read() async throws(TokenError) -> StoredSession? {
        try checkAccount()
        let item: TokenItem?
        do throws(TokenStorageError) {
            item = try await storage.item(for: key)
        } catch {
            throw .storage(error)
        }
        return try item.map { (item) throws(TokenError) in try Self.session(in: item) }
    }

    /// Returns the key of the record of `account`.
    static func key(of account: String) -> TokenKey { TokenKey(records + account) }
    /// Returns the key of the flag of `account`.
    static func flagKey(of account: String) -> TokenKey { TokenKey(flags + account) }

    /// Returns the session that is stored in `item`. Throws `unknownRecord`.
    static func session(in item: TokenItem) throws(TokenError) -> StoredSession {
        guard let record = try? item.secret.decode(SessionRecord.self),
            SessionRecord.versions.contains(record.version)
        else { throw .unknownRecord }
        return StoredSession(record: record, generation: item.metadata.generation)
    }

    /// Returns whether the account is signed in, according to the flag; `nil` when the flag cannot be read
    /// either.
    func flag() async -> Bool? {
        do throws(TokenStorageError) { return try await storage.contains(for: flagKey) } catch { return nil }
    }

    /// Stores a session with its flag. Replaces any previous session.
    func begin(_ record: SessionRecord) async throws(TokenError) -> StoredSession {
        try checkAccount()
        let commit = try await commit(
            try Self.beginning(record, at: account, policy: policy, where: storage.supportedPolicies))
        guard let generation = commit.generation else { throw .storage(.other) }
        return StoredSession(record: record, generation: generation)
    }

    /// Returns the changes that store a session with its flag, in a storage with these policies.
    static func beginning(
        _ record: SessionRecord, at account: String, policy: AccessPolicy?,
        where policies: Set<AccessPolicy>, expecting expectation: TokenChange.Expectation = .any
    ) throws(TokenError) -> [TokenChange] {
        let isKept = policies.contains(.afterFirstUnlockThisDeviceOnly)
        return [
            .store(
                try secret(of: record), for: key(of: account), details: TokenDetails(policy: policy),
                expecting: expectation),
            .store(
                Secret([]), for: flagKey(of: account),
                details: TokenDetails(policy: isKept ? .afterFirstUnlockThisDeviceOnly : nil)),
        ]
    }

    /// Returns the changes that delete a session with its flag.
    static func ending(_ account: String, expecting expectation: TokenChange.Expectation) -> [TokenChange] {
        [.delete(key(of: account), expecting: expectation), .delete(flagKey(of: account))]
    }

    /// Stores a record in place of the one of generation `expected`; returns `nil` when another record or
    /// none is stored. Throws `storage`, with `outcomeUnknown` when the caller has to read the record again.
    func replace(
        _ expected: Generation, with record: SessionRecord
    ) async throws(TokenError) -> StoredSession? {
        let change = TokenChange.store(
            try Self.secret(of: record), for: key, expecting: .generation(expected))
        do throws(TokenStorageError) {
            guard let generation = try await storage.commit([change]).generation else { throw .other }
            return StoredSession(record: record, generation: generation)
        } catch {
            if error.code == .conflict || error.code == .notFound { return nil }
            throw .storage(error)
        }
    }

    /// Deletes the record of generation `expected` with its flag; returns false when another record or none
    /// is stored.
    func end(_ expected: Generation) async throws(TokenError) -> Bool {
        do throws(TokenError) {
            return try await end(expecting: .generation(expected)).existed
        } catch {
            guard case .storage(let failure) = error, failure.code == .conflict else { throw error }
            return false
        }
    }

    /// The result of deleting a record.
    struct End: Sendable {
        /// Whether there was a record.
        var existed: Bool
        /// The generation of the commit that deleted the record, if known.
        var generation: Generation?
    }

    /// Deletes any record with its flag.
    func end() async throws(TokenError) -> End { try await end(expecting: .any) }

    private func end(expecting expectation: TokenChange.Expectation) async throws(TokenError) -> End {
        do throws(TokenError) {
            let commit = try await commit(Self.ending(account, expecting: expectation))
            return End(existed: commit.existed.first ?? false, generation: commit.generation)
        } catch {
            guard case .storage(let failure) = error, failure.code == .outcomeUnknown, try await read() == nil
            else { throw error }
            return End(existed: true, generation: failure.generation)
        }
    }

    /// Returns the accounts in `storage` that have a session, in the order of their bytes. The flags also
    /// list locked sessions. Throws `storage`, with `locked` when there may be others.
    static func accounts(in storage: any TokenStorage) async throws(TokenError) -> [String] {
        do throws(TokenStorageError) {
            var listings: [TokenListing] = []
            for prefix in [records, flags] {
                listings.append(try await storage.list(TokenQuery(prefix: prefix)))
            }
            return try accounts(in: listings, storage.supportedPolicies)
        } catch {
            throw .storage(error)
        }
    }

    /// Returns the same accounts, for programs without tasks.
    static func accounts(in storage: any BlockingTokenStorage) throws(TokenError) -> [String] {
        do throws(TokenStorageError) {
            var listings: [TokenListing] = []
            for prefix in [records, flags] { listings.append(try storage.list(TokenQuery(prefix: prefix))) }
            return try accounts(in: listings, storage.supportedPolicies)
        } catch {
            throw .storage(error)
        }
    }

    private static func accounts(
        in listings: [TokenListing], _ policies: Set<AccessPolicy>
    ) throws(TokenStorageError) -> [String] {
        var names = Set<TokenKey>()
        for (prefix, listing) in zip([records, flags], listings) {
            // By bytes: the start of a name can combine with the slash into one character.
            names.formUnion(
                listing.items.map {
                    TokenKey(
                        String(decoding: $0.key.name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self))
                })
            if !policies.contains(.afterFirstUnlockThisDeviceOnly), listing.hiddenReasons[.locked] ?? 0 > 0 {
                throw TokenStorageError(.locked, operation: "list", backend: "auth")
            }
        }
        return names.sorted().map(\.name)
    }

    private func commit(_ changes: [TokenChange]) async throws(TokenError) -> TokenCommit {
        do throws(TokenStorageError) { return try await storage.commit(changes) } catch {
            throw .storage(error)
        }
    }

    private static func secret(of record: SessionRecord) throws(TokenError) -> Secret {
        do throws(TokenStorageError) { return try Secret(encoding: record) } catch { throw .storage(error) }
    }
}

extension TokenStorageError {
    /// The error for a storage that broke its contract.
    fileprivate static var other: TokenStorageError {
        TokenStorageError(.internalError, operation: "refresh", backend: "auth")
    }
}
