internal import TokenVault
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

extension TokenManager {
    /// Begins a session with `tokens` in place of the one that is there. A refresh of that one which is under way is not
    /// stored any more. Readers of ``tokenStream`` see it when it is stored. Throws `malformed` for tokens that no header
    /// can carry, `storage`.
    public func updateTokens(_ tokens: TokenInfo, user: AuthUser? = nil) async throws(TokenError) {
        guard tokens.accessSecret.isTokenText else { throw .malformed("the access token") }
        guard tokens.refreshSecret?.isTokenText ?? true else { throw .malformed("the refresh token") }
        try await begin(.beginning(tokens, user: user, at: configuration.clock()))
    }

    /// Begins a session of a guest that no server knows of, in place of the one that is there: it lasts until it is cleared,
    /// and gives no access token. Throws `storage`.
    public func beginGuestSession() async throws(TokenError) {
        try await begin(.guest(AuthUser(identifier: Random.name(), isGuest: true), at: configuration.clock()))
    }

    private func begin(_ record: SessionRecord) async throws(TokenError) {
        watch()
        let stored = try await store.begin(record)
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
        if let revoke, let stored = try await store.read(), !stored.record.isWithoutTokens {
            let tokens = unsaved?.record.tokens ?? stored.record.tokens
            if case .failure(let reason) = await configuration.bounded({ try await revoke(tokens) }) {
                failure = reason
            }
        }
        try await clearTokens()
        if let failure { throw .notRevoked(failure) }
    }
}
