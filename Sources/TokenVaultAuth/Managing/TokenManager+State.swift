public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

extension TokenManager {
    /// Returns the stored tokens, expired or not; `nil` when the account is signed out. Throws `storage`,
    /// `unknownRecord`.
    public func currentTokens() async throws(TokenError) -> TokenInfo? {
        try await load().flatMap { $0.record.isWithoutTokens ? nil : $0.record.tokens }
    }

    /// Returns the accounts in `storage` that have a session, in the order of their bytes. Throws `storage`.
    public static func accounts(in storage: any TokenStorage) async throws(TokenError) -> [String] {
        try await SessionStore.accounts(in: storage)
    }

    /// Returns whether the account is signed in, without asking the server. Distinguishes *locked* from
    /// *signed out*; a failure to read is part of the returned state.
    public func authState() async -> AuthState {
        _ = try? await load()
        return board.snapshot.state ?? .unknown
    }

    /// A sequence of the present state, as in ``authState()``, and every change after it. Unlocking a storage
    /// produces no change, so call ``authState()`` after unlocking. Each access creates a separate sequence.
    public nonisolated var authStates: AuthStates {
        let changes = board.changes { $0.state }
        Task { [weak self] in _ = try? await self?.load() }
        return changes
    }

    /// Returns the signed-in user, as given at sign-in; `nil` when the account is signed out. Throws
    /// `storage`, `unknownRecord`.
    public func currentUser() async throws(TokenError) -> AuthUser? { try await load()?.record.user }

    /// Returns whether a session can supply an access token, without asking the server. Throws `storage`,
    /// `unknownRecord`: an unreadable session does not count as signed out.
    public func isAuthenticated() async throws(TokenError) -> Bool {
        guard let stored = try await load() else { return false }
        if stored.record.isWithoutTokens { return true }
        let judgement = judgement()
        return judgement.isUsable(stored.record) || judgement.isRefreshable(stored.record)
    }

    /// A sequence of the present tokens and every change after them. Each access creates a separate sequence.
    public nonisolated var tokenStream: TokenStream {
        let changes = board.changes { $0.tokens }
        Task { [weak self] in _ = try? await self?.load() }
        return changes
    }

    /// Discards the tokens in memory; the next call reads the storage again.
    public func invalidateCache() { board.update { $0.doubt() } }

    /// Notes the time of a response of `origin` (`Date` header). If this machine's clock was set since the
    /// previous response, the manager corrects its expiry checks. ``TokenAuthProvider`` does this for the
    /// requests that it authorizes.
    public nonisolated func noteServerDate(_ date: Date, from origin: RequestOrigin) {
        let ahead = date.timeIntervalSince(configuration.clock())
        board.update { $0.note(origin, ahead: ahead) }
    }
}
