public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

extension TokenManager {
    /// The tokens as they are stored, expired or not; `nil` when nobody is signed in. Throws `storage`, `unknownRecord`.
    public func currentTokens() async throws(TokenError) -> TokenInfo? {
        try await load().flatMap { $0.record.isWithoutTokens ? nil : $0.record.tokens }
    }

    /// The accounts in `storage` that have a session, in the order of their bytes. Throws `storage`.
    public static func accounts(in storage: any TokenStorage) async throws(TokenError) -> [String] {
        try await SessionStore.accounts(in: storage)
    }

    /// Whether somebody is signed in, without asking the server, and telling *locked* from *signed out*. What keeps it from
    /// being read is part of the answer.
    public func authState() async -> AuthState {
        _ = try? await load()
        return board.snapshot.state ?? .unknown
    }

    /// The state of now, as ``authState()``, then every change. A storage that is unlocked tells nobody: ask for the state
    /// when it was. Each call makes a sequence of its own.
    public nonisolated var authStates: AuthStates {
        let changes = board.changes { $0.state }
        Task { [weak self] in _ = try? await self?.load() }
        return changes
    }

    /// Who is signed in, as the sign-in told; `nil` when nobody is. Throws `storage`, `unknownRecord`.
    public func currentUser() async throws(TokenError) -> AuthUser? { try await load()?.record.user }

    /// Whether there is a session that can give an access token, without asking the server. Throws `storage`,
    /// `unknownRecord`: what cannot be read is not signed out.
    public func isAuthenticated() async throws(TokenError) -> Bool {
        guard let stored = try await load() else { return false }
        if stored.record.isWithoutTokens { return true }
        let judgement = judgement()
        return judgement.isUsable(stored.record) || judgement.isRefreshable(stored.record)
    }

    /// The tokens of now, then every change. Each call makes a stream of its own.
    public nonisolated var tokenStream: TokenStream {
        let changes = board.changes { $0.tokens }
        Task { [weak self] in _ = try? await self?.load() }
        return changes
    }

    /// Lets go of what is in memory; the next call reads the storage again.
    public func invalidateCache() { board.update { $0.doubt() } }

    /// Notes the time that an answer of `origin` carried (`Date` header): when this machine's clock was set since the answer
    /// before, expiries are judged accordingly. ``TokenAuthProvider`` does it for what it authorizes.
    public nonisolated func noteServerDate(_ date: Date, from origin: RequestOrigin) {
        let ahead = date.timeIntervalSince(configuration.clock())
        board.update { $0.note(origin, ahead: ahead) }
    }
}
