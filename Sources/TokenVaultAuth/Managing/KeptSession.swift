package import TokenVault

#if canImport(FoundationEssentials)
package import FoundationEssentials
#endif

/// A session as it is stored, for programs that begin and end one without a manager, in one commit with items of their own.
package struct KeptSession: Sendable {
    /// The generation of its record.
    package let generation: Generation
    /// Its tokens; `nil` when it has none, or a newer program stored it.
    package let tokens: TokenInfo?
    /// Which client of which provider they were given to; `nil` when whoever signed in did not say.
    package let source: TokenSource?
    /// Whether a refresh was begun whose outcome is not stored: the provider may have given newer tokens, which are not here.
    package let mayBeOutdated: Bool
    /// Whether whoever began that has not given up, as far as is stored: who is at it still revokes what comes too late.
    package let mayBeRenewing: Bool
    /// The bytes of the record.
    private let secret: Secret
    /// `nil` where a session without the root key chose it.
    private let policy: AccessPolicy?

    /// The session of `account`; `nil` when nobody is signed in. Throws `storage`.
    package static func read(
        _ account: String, in storage: any BlockingTokenStorage
    ) throws(TokenError) -> KeptSession? {
        let item: TokenItem?
        do throws(TokenStorageError) { item = try storage.item(for: SessionStore.key(of: account)) } catch {
            throw .storage(error)
        }
        guard let item else { return nil }
        let record = try? SessionStore.session(in: item).record
        let hasTokens = record.map { !$0.isWithoutTokens } ?? false
        return KeptSession(
            generation: item.metadata.generation, tokens: hasTokens ? record?.tokens : nil,
            source: record?.source, mayBeOutdated: hasTokens && record?.intent != nil,
            mayBeRenewing: record?.intent.map { !$0.isOver } ?? false, secret: item.secret,
            policy: item.metadata.isPolicyFromLimitedSession ? nil : item.metadata.policy)
    }

    /// What begins a session with `tokens` at `account`, in a storage of these policies, as long as what is there is what was
    /// read before. `policy` is that of its item; `nil` keeps the one there is. Throws `malformed` for tokens, a type or
    /// scopes that no header can carry, `storage` for an account that is none.
    package static func beginning(
        with tokens: TokenInfo, user: AuthUser?, from source: TokenSource, at account: String,
        policy: AccessPolicy?, where policies: Set<AccessPolicy>, replacing known: KeptSession?, now: Date
    ) throws(TokenError) -> [TokenChange] {
        try tokens.requireUsable()
        return try SessionStore.beginning(
            .beginning(tokens, user: user, source: source, at: now), at: account, policy: policy,
            where: policies, expecting: known.map { .generation($0.generation) } ?? .absent)
    }

    /// What ends this session at `account`, as long as it is there as it was read.
    package func ending(at account: String) -> [TokenChange] {
        SessionStore.ending(account, expecting: .generation(generation))
    }

    /// What puts this session back at `account`, as long as the one of `generation` is there.
    package func returning(to account: String, insteadOf generation: Generation) -> [TokenChange] {
        [
            .store(
                secret, for: SessionStore.key(of: account), details: TokenDetails(policy: policy),
                expecting: .generation(generation))
        ]
    }

    /// The accounts in `storage` that have a session, in the order of their bytes. Throws `storage`, with `locked` when there
    /// may be others.
    package static func accounts(in storage: any BlockingTokenStorage) throws(TokenError) -> [String] {
        try SessionStore.accounts(in: storage)
    }
}
