public import TokenVault

/// Keeps the tokens of one account in a storage, and good: the access token is renewed when it is due, once, whoever asks
/// and in however many processes.
///
/// ```swift
/// let manager = TokenManager(storage: storage, account: "work") { request in
///     try await client.refresh(request.refreshToken)
/// }
/// try await manager.updateTokens(tokens)                // after signing in
/// let token = try await manager.validAccessToken()      // before every request
/// ```
///
/// *Locked is not signed out*: what could not be read is thrown as ``TokenError/storage(_:)``, and only what is known to be
/// absent is ``TokenError/tokenNotFound``. A token that was read stays in this process's memory while the manager lives,
/// also when the vault is locked afterwards; ``invalidateCache()`` wipes it.
public actor TokenManager {
    /// The account's name, part of the keys in the storage.
    public nonisolated let account: String
    /// How tokens are judged, and for how long is waited.
    public nonisolated let configuration: Configuration

    let store: SessionStore
    nonisolated let board: SessionState
    let transaction: RefreshTransaction
    nonisolated let coordinator: TokenRefreshCoordinator<RefreshFlight>
    let revoke: RevokeRequestProvider?
    /// Tokens that are here and could not be stored yet.
    var unsaved: UnsavedSession?
    /// What tries to store them while nobody calls.
    var saving: Task<Void, Never>?
    private var watching: Task<Void, Never>?

    /// The manager of `account` in `storage`. Nothing is read yet. The account is 1 to 1,000 bytes of UTF-8 without control
    /// characters; the calls throw `storage` with `invalidKey` for another one.
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

    /// An access token that is good for longer than the buffer, as text: the one in memory, the one another process stored,
    /// or a new one.
    ///
    /// When the server cannot be asked for now and the token is still good, it is that one. Throws `tokenNotFound`,
    /// `refreshTokenMissing`, `refreshTokenExpired`, `sessionExpired`, `refreshFailed`, `sessionChanged`, `notSaved`,
    /// `storage`, `unknownRecord`, `timedOut` and `cancelled` of ``TokenError``.
    public nonisolated func validAccessToken() async throws(TokenError) -> String {
        try await accessToken().text
    }

    /// As ``validAccessToken()``, with the session it belongs to.
    public nonisolated func accessToken() async throws(TokenError) -> AccessToken {
        if let token = board.token { return token }
        return AccessToken(try await session().record)
    }

    /// A token in place of one that a server refused: the newest, if that is another one already, or a new one. Throws as
    /// ``validAccessToken()``, and `sessionChanged` when `refused` is of another session than the one of now.
    public func accessToken(replacing refused: AccessToken) async throws(TokenError) -> AccessToken {
        let demand = TokenRequirement(
            session: refused.session, refused: refused.secret, shift: board.snapshot.shift,
            begun: configuration.clock())
        if let known = board.snapshot.session, judgement().satisfies(demand, known.record) {
            return AccessToken(known.record)
        }
        return AccessToken(try await obtain(demand).record)
    }

    /// Renews the tokens now, whatever the expiry says; returns the new ones. Throws as ``validAccessToken()``.
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

    /// The stored session, from memory if it is known. Throws `storage`, `unknownRecord`.
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

    /// Begins to follow what other processes and managers store.
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

/// Other threads change what it has.
extension TokenManager: RedactedStringConvertible {}
