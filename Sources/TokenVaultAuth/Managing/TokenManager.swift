public import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Keeps the tokens of one account in a storage, and refreshes the access token when it is due. One refresh
/// serves all callers, in any number of processes.
///
/// ```swift
/// let manager = TokenManager(storage: storage, account: "work") { request in
///     try await client.refresh(request.refreshToken)
/// }
/// try await manager.updateTokens(tokens)                // after signing in
/// let token = try await manager.validAccessToken()      // before every request
/// ```
///
/// *Locked is not signed out*: an unreadable storage throws ``TokenError/storage(_:)``, and only a session
/// that is known to be absent throws ``TokenError/tokenNotFound``. A token that was read stays in this
/// process's memory while the manager lives, even after the vault is locked. ``invalidateCache()`` wipes it.
public actor TokenManager {
    /// The account's name, part of the keys in the storage.
    public nonisolated let account: String
    /// The rules by which tokens are judged, and the time limits.
    public nonisolated let configuration: Configuration

    let store: SessionStore
    nonisolated let board: SessionState
    let transaction: RefreshTransaction
    nonisolated let coordinator: TokenRefreshCoordinator<RefreshFlight>
    let revoke: RevokeRequestProvider?
    /// Tokens that could not be stored yet.
    var unsaved: UnsavedSession?
    /// The task that retries to store them in the background.
    var saving: Task<Void, Never>?
    private var watching: Task<Void, Never>?
    /// The newest token that replaced a refused one, and its time.
    private var replacement: (token: AccessToken, time: Date)?

    /// The time after which a token that replaced a refused one may be replaced itself, in seconds.
    private static let replacementPause = 30.0

    /// Creates the manager of `account` in `storage`, without reading it. The account is 1 to 1,000 bytes of
    /// UTF-8 without control characters. For any other account the calls throw `storage` with `invalidKey`.
    public init(
        storage: any TokenStorage, account: String, configuration: Configuration = Configuration(),
        revokeRequestProvider: RevokeRequestProvider? = nil,
        refreshRequestProvider: @escaping RefreshRequestProvider
    ) {
        self.account = account
        self.configuration = configuration
        store = SessionStore(storage: storage, account: account, policy: configuration.policy)
        board = SessionState(configuration)
        revoke = revokeRequestProvider
        coordinator = TokenRefreshCoordinator(limit: configuration.flightLimit)
        transaction = RefreshTransaction(
            store: store, lease: LeaseTaker(configuration.lease, storage: storage, account: account),
            configuration: configuration, provider: refreshRequestProvider, revoke: revokeRequestProvider)
    }

    deinit {
        watching?.cancel()
        saving?.cancel()
    }

    /// Returns, as text, an access token that is good for longer than the buffer. It comes from memory, from
    /// another process's refresh, or from a new refresh.
    ///
    /// While the server cannot be reached, returns the present token as long as it is still good. Throws
    /// `tokenNotFound`, `refreshTokenMissing`, `refreshTokenExpired`, `sessionExpired`, `refreshFailed`,
    /// `sessionChanged`, `notSaved`, `storage`, `unknownRecord`, `timedOut` and `cancelled` of
    /// ``TokenError``.
    public nonisolated func validAccessToken() async throws(TokenError) -> String {
        try await accessToken().text
    }

    /// Returns the same token as ``validAccessToken()``, with the session that it belongs to.
    public nonisolated func accessToken() async throws(TokenError) -> AccessToken {
        if let token = board.token { return token }
        return AccessToken(try await session().record)
    }

    /// Returns a token in place of a rejected token: the newest stored token if it differs, or a new one.
    /// Throws the same errors as ``validAccessToken()``, and `sessionChanged` when `refused` belongs to a
    /// session other than the present one. Throws `tokenRefused` when `refused` and the last replacement of a
    /// refused token are less than half a minute old.
    public func accessToken(replacing refused: AccessToken) async throws(TokenError) -> AccessToken {
        let demand = TokenRequirement(
            session: refused.session, refused: refused.secret, shift: board.snapshot.shift,
            begun: configuration.clock())
        let known = board.snapshot.session
        if let known, judgement().satisfies(demand, known.record) {
            return noted(AccessToken(known.record))
        }
        if let replacement, isNew(refused, known, after: replacement) {
            throw .tokenRefused
        }
        return noted(AccessToken(try await obtain(demand).record))
    }

    /// Whether `refused` is only seconds old, and so is the last replacement. Another process may have obtained
    /// it. An expired token is not new, however short its life was.
    private func isNew(
        _ refused: AccessToken, _ known: StoredSession?, after replacement: (token: AccessToken, time: Date)
    ) -> Bool {
        let now = configuration.clock()
        guard replacement.token.session == refused.session,
            abs(now.timeIntervalSince(replacement.time)) < Self.replacementPause
        else { return false }
        guard let record = known?.record else { return replacement.token == refused }
        return judgement().isFresh(record)
            && abs(now.timeIntervalSince1970 - record.obtained) < Self.replacementPause
    }

    /// Notes a token that replaces a refused one, whichever process or call obtained it.
    private func noted(_ token: AccessToken) -> AccessToken {
        if replacement?.token != token { replacement = (token, configuration.clock()) }
        return token
    }

    /// Refreshes the tokens now, regardless of their expiry, and returns the new ones. Throws the same errors
    /// as ``validAccessToken()``.
    @discardableResult
    public func refreshTokens() async throws(TokenError) -> TokenInfo {
        let known = try await knownSession()
        let refused = known.record.tokens.accessSecret
        return try await obtain(
            TokenRequirement(
                session: known.record.session, refused: refused, shift: board.snapshot.shift,
                begun: configuration.clock())
        ).record.tokens
    }

    /// Returns the stored session, from memory if it is known. Throws `storage`, `unknownRecord`.
    func load() async throws(TokenError) -> StoredSession? {
        watch()
        while true {
            let before = board.snapshot
            switch before.knowledge {
            case .signedOut: return nil
            case .signedIn(let stored): return stored
            case .unread, .unreadable: break
            }
            do throws(TokenError) {
                let stored = try await store.read()
                board.update { $0.take(read: stored, since: before.epoch) }
                discardUnsaved(unless: stored?.record.session)
            } catch {
                let hasSession = await store.flag()
                board.update { $0.fail(error, hasSession: hasSession, since: before.epoch) }
                throw error
            }
        }
    }

    /// Starts to follow the changes that other processes and managers store.
    func watch() {
        guard watching == nil else { return }
        let changes = store.storage.changes()
        watching = Task { [weak self] in
            for await event in changes { await self?.note(event) }
            await self?.stopWatching()
        }
    }

    private func stopWatching() {
        watching = nil
        board.update { $0.doubt() }
    }

    private func note(_ event: TokenEvent) async {
        switch event {
        case .stored(let key, let generation) where key == store.key:
            guard board.snapshot.isNews(generation) else { return }
            board.update { $0.expectNewer() }
        case .deleted(let key, let generation) where key == store.key:
            board.update { $0.end(generation) }
            discardUnsaved(unless: board.snapshot.session?.record.session)
            return
        case .overflowed: board.update { $0.doubt() }
        default: return
        }
        _ = try? await load()
    }
}

/// Redacted, since other threads change its state.
extension TokenManager: RedactedStringConvertible {}
