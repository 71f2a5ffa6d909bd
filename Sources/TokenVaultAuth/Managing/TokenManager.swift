public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

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
/// also when the vault is locked afterwards; ``forget()`` lets go of it.
public actor TokenManager {
    /// The account's name, part of the keys in the storage.
    public nonisolated let account: String
    /// How tokens are judged, and for how long is waited.
    public nonisolated let configuration: Configuration

    let store: SessionStore
    nonisolated let board: SessionBoard
    private let transaction: RefreshTransaction
    private let coordinator: TokenRefreshCoordinator<StoredSession>
    private let revoke: RevokeRequestProvider?
    private var unsaved: UnsavedSession?
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
        board = SessionBoard(configuration)
        revoke = revokeRequestProvider
        coordinator = TokenRefreshCoordinator(limit: configuration.callLimit)
        transaction = RefreshTransaction(
            store: store, lease: LeaseTaker(configuration.lease, storage: storage, account: account),
            configuration: configuration, provider: refreshRequestProvider, revoke: revokeRequestProvider)
    }

    deinit { watching?.cancel() }

    // MARK: Tokens

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
        let demand = TokenDemand(session: refused.session, refused: refused.secret, skew: board.snapshot.skew)
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
            TokenDemand(session: known.record.session, refused: refused, skew: board.snapshot.skew)
        ).record.tokens
    }

    /// The tokens as they are stored, expired or not; `nil` when nobody is signed in. Throws `storage`, `unknownRecord`.
    public func currentTokens() async throws(TokenError) -> TokenInfo? { try await load()?.record.tokens }

    /// The accounts in `storage` that have a session, in the order of their bytes. Throws `storage`.
    public static func accounts(in storage: any TokenStorage) async throws(TokenError) -> [String] {
        try await SessionStore.accounts(in: storage)
    }

    /// Whether somebody is signed in, without asking the server, and telling *locked* from *signed out*. Throws `storage`
    /// for what is neither, `unknownRecord`.
    public func sessionState() async throws(TokenError) -> SessionState {
        do throws(TokenError) {
            return try await load() == nil ? .signedOut : .signedIn
        } catch {
            guard case .storage(let failure) = error, failure.code == .locked else { throw error }
            return .locked(wasSignedIn: await store.flag())
        }
    }

    /// Whether there is a session that can give an access token, without asking the server. Throws `storage`,
    /// `unknownRecord`: what cannot be read is not signed out.
    public func isAuthenticated() async throws(TokenError) -> Bool {
        guard let stored = try await load() else { return false }
        let judgement = judgement()
        return judgement.isUsable(stored.record) || judgement.isRefreshable(stored.record)
    }

    /// The tokens of now, then every change. Each call makes a stream of its own.
    public nonisolated var tokenStream: TokenStream {
        let stream = board.stream()
        Task { [weak self] in _ = try? await self?.load() }
        return stream
    }

    /// Lets go of what is in memory; the next call reads the storage again.
    public func forget() { board.update { $0.doubt() } }

    /// Notes the time that a server's answer carried (`Date` header): expiries are judged by it after the clock of this
    /// machine was set. ``TokenAuthProvider`` does it for what it authorizes.
    public nonisolated func noteServerDate(_ date: Date) {
        let skew = date.timeIntervalSince(configuration.clock())
        board.update { $0.note(skew: skew) }
    }

    // MARK: Sessions

    /// Begins a session with `tokens` in place of the one that is there. A refresh of that one which is under way is not
    /// stored any more. Readers of ``tokenStream`` see it when it is stored. Throws `malformed` for tokens that no header
    /// can carry, `storage`.
    public func updateTokens(_ tokens: TokenInfo) async throws(TokenError) {
        guard tokens.accessSecret.isTokenText else { throw .malformed("the access token") }
        guard tokens.refreshSecret?.isTokenText ?? true else { throw .malformed("the refresh token") }
        watch()
        let stored = try await store.begin(.beginning(tokens, at: configuration.clock()))
        unsaved = nil
        board.update { $0.take(stored) }
    }

    /// Ends the session here; the server is not told. Whether there was one. Nothing of it is left in the storage. Throws
    /// `storage`: the session is still there then.
    @discardableResult
    public func clearTokens() async throws(TokenError) -> Bool {
        let ended = try await store.end()
        unsaved = nil
        board.update { $0.end(ended.generation) }
        return ended.existed
    }

    /// Tells the server that the session is over and ends it here. A refresh that is under way, in any process, is waited
    /// for, so that what it brings is revoked as well. Throws `storage` when the session could not be ended, `notRevoked`
    /// when it was ended here and the server could not be told.
    public func revokeTokens() async throws(TokenError) {
        let hold: LeaseHold?
        if let unsaved {
            hold = unsaved.hold
        } else {
            hold = try? await transaction.lease.take(within: configuration.leaseTimeout)
        }
        defer { withExtendedLifetime(hold) {} }
        var failure: RefreshFailure?
        if let revoke, let stored = try await store.read() {
            let tokens = unsaved?.record.tokens ?? stored.record.tokens
            if case .failure(let reason) = await configuration.bounded({ try await revoke(tokens) }) {
                failure = reason
            }
        }
        try await clearTokens()
        if let failure { throw .notRevoked(failure) }
    }

    // MARK: Inside

    /// The stored session, from memory if it is known. Throws `storage`, `unknownRecord`.
    func load() async throws(TokenError) -> StoredSession? {
        watch()
        while true {
            let before = board.snapshot
            switch before.knowledge {
            case .signedOut: return nil
            case .signedIn(let stored): return stored
            case .unread: break
            }
            let stored = try await store.read()
            board.update { $0.take(read: stored, since: before.epoch) }
        }
    }

    private func knownSession() async throws(TokenError) -> StoredSession {
        guard let stored = try await load() else { throw .tokenNotFound }
        return stored
    }

    func judgement() -> TokenJudgement {
        TokenJudgement(configuration, at: configuration.clock(), skew: board.snapshot.skew)
    }

    private func session() async throws(TokenError) -> StoredSession {
        let known = try await knownSession()
        if unsaved == nil, judgement().isFresh(known.record) { return known }
        do throws(TokenError) {
            return try await obtain(TokenDemand(session: known.record.session, skew: board.snapshot.skew))
        } catch {
            // What the server cannot renew for now may still be good for what is left of it.
            switch error {
            case .refreshFailed, .timedOut: break
            default: throw error
            }
            guard let current = board.snapshot.session,
                AccessToken(current.record) == AccessToken(known.record),
                judgement().isUsable(known.record)
            else { throw error }
            return current
        }
    }

    /// What `demand` asks for, by way of the one refresh that runs.
    private func obtain(_ demand: TokenDemand) async throws(TokenError) -> StoredSession {
        var attempt = 0
        while true {
            attempt += 1
            do throws(TokenError) {
                let stored = try await coordinator.value { [self] () async throws(TokenError) in
                    try await renew(demand)
                }
                // It may have been another's demand, for less than this one.
                if attempt >= configuration.attempts || judgement().satisfies(demand, stored.record) {
                    return stored
                }
            } catch {
                guard attempt < configuration.attempts, try await mayRetry(after: error, demand) else {
                    throw error
                }
            }
        }
    }

    /// Waits until the next attempt, if that is soon.
    private func mayRetry(after error: TokenError, _ demand: TokenDemand) async throws(TokenError) -> Bool {
        switch error {
        case .refreshFailed(let failure, let time?):
            let left = Duration.seconds(max(0, time.timeIntervalSince(configuration.clock())))
            guard failure.isTemporary, left <= configuration.patience else { return false }
            do { try await configuration.sleep(left) } catch { throw .cancelled }
            return true
        case .sessionChanged:
            // That of another caller, who began with another session.
            return board.snapshot.session.map { $0.record.session == demand.session } ?? false
        default: return false
        }
    }

    /// The body of the one refresh that runs.
    private func renew(_ demand: TokenDemand) async throws(TokenError) -> StoredSession {
        do throws(TokenError) {
            let ending: RefreshTransaction.Ending
            if let unsaved {
                self.unsaved = nil
                ending = try await transaction.save(unsaved, demand)
            } else {
                ending = try await transaction.run(demand)
            }
            switch ending {
            case .current(let stored):
                board.update { $0.take(stored) }
                return stored
            case .unsaved(let session, let error):
                unsaved = session
                throw .notSaved(error)
            }
        } catch {
            switch error {
            case .tokenNotFound, .sessionChanged, .sessionExpired:
                board.update { $0.doubt() }
                _ = try? await load()
            default: break
            }
            throw error
        }
    }

    /// Begins to follow what other processes and managers store.
    private func watch() {
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
            return
        case .overflowed: board.update { $0.doubt() }
        default: return
        }
        _ = try? await load()
    }
}
