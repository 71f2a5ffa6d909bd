package import TokenVault

#if canImport(FoundationEssentials)
package import FoundationEssentials
#endif

/// A stored session, for programs that begin and end sessions without a manager. Such a program can commit
/// the session together with its own items.
package struct KeptSession: Sendable {
    /// The generation of the session's record.
    package let generation: Generation
    /// The identifier of the sign-in; `nil` when a newer program stored it.
    package let identifier: String?
    /// The session's tokens; `nil` when it has none, or a newer program stored it.
    package let tokens: TokenInfo?
    /// The provider and the client that the tokens were issued to; `nil` when the sign-in did not say.
    package let source: TokenSource?
    /// The user, as given at the sign-in.
    package let user: AuthUser?
    /// Whether a refresh was begun whose outcome is not stored: the provider may have issued newer tokens,
    /// which are not here.
    package let mayBeOutdated: Bool
    /// Whether the process that began that refresh may still be running it, judged by the stored intent. Such
    /// a process revokes tokens that arrive too late.
    package let mayBeRenewing: Bool
    /// The bytes of the record.
    private let secret: Secret
    /// The item's policy; `nil` if it was chosen in a limited session, without the root key.
    private let policy: AccessPolicy?

    /// Returns the session of `account`; `nil` when the account is signed out. Throws `storage`.
    package static func read(
        _ account: String, in storage: any BlockingTokenStorage
    ) throws(TokenError) -> KeptSession? {
        let item: TokenItem?
        do throws(TokenStorageError) { item = try storage.item(for: SessionStore.key(of: account)) } catch {
            throw .storage(error)
        }
        return item.map(KeptSession.init)
    }

    /// Creates the session that is stored in `item`.
    init(_ item: TokenItem) {
        let record = try? SessionStore.session(in: item).record
        let hasTokens = record.map { !$0.isWithoutTokens } ?? false
        generation = item.metadata.generation
        identifier = record?.session
        tokens = hasTokens ? record?.tokens : nil
        source = record?.source
        user = record?.user
        mayBeOutdated = hasTokens && record?.intent != nil
        mayBeRenewing = record?.intent.map { !$0.isOver } ?? false
        secret = item.secret
        policy = item.metadata.isPolicyFromLimitedSession ? nil : item.metadata.policy
    }

    /// Returns the changes that begin the session `identifier` with `tokens` at `account`, in a storage with these policies.
    /// The commit succeeds only while the stored session is still `known`. `policy` is the policy of the
    /// item; `nil` keeps the existing policy. Throws `malformed` for tokens, a type or scopes that no header
    /// can carry, and `storage` for an invalid account.
    package static func beginning(
        _ identifier: String, with tokens: TokenInfo, user: AuthUser?, from source: TokenSource,
        at account: String,
        policy: AccessPolicy?, where policies: Set<AccessPolicy>, replacing known: KeptSession?, now: Date
    ) throws(TokenError) -> [TokenChange] {
        try tokens.requireUsable()
        var record = SessionRecord.beginning(tokens, user: user, source: source, at: now)
        record.session = identifier
        return try SessionStore.beginning(
            record, at: account, policy: policy,
            where: policies, expecting: known.map { .generation($0.generation) } ?? .absent)
    }

    /// Returns the changes that end this session at `account`. The commit succeeds only while the record is
    /// unchanged since it was read.
    package func ending(at account: String) -> [TokenChange] {
        SessionStore.ending(account, expecting: .generation(generation))
    }

    /// Returns the changes that restore this session at `account`. The commit succeeds only while the session
    /// of `generation` is stored.
    package func returning(to account: String, insteadOf generation: Generation) -> [TokenChange] {
        [
            .store(
                secret, for: SessionStore.key(of: account), details: TokenDetails(policy: policy),
                expecting: .generation(generation))
        ]
    }

    /// Returns the accounts in `storage` that have a session, in the order of their bytes. Throws `storage`,
    /// with `locked` when there may be others.
    package static func accounts(in storage: any BlockingTokenStorage) throws(TokenError) -> [String] {
        try SessionStore.accounts(in: storage)
    }
}
