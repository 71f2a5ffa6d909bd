internal import TokenVault
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

extension TokenManager {
    /// Begins a session with `tokens` in place of the previous session. A running refresh of the previous
    /// session is no longer stored. Readers of ``tokenStream`` get the tokens once they are stored. Throws
    /// `malformed` for tokens, a type or scopes that no header can carry, and `storage`.
    public func updateTokens(_ tokens: TokenInfo, user: AuthUser? = nil) async throws(TokenError) {
        try tokens.requireUsable()
        try await begin(.beginning(tokens, user: user, at: configuration.clock()))
    }

    /// Begins a guest session, which no server knows, in place of the previous session. A guest session lasts
    /// until it is cleared, and has no access token. Throws `storage`.
    public func beginGuestSession() async throws(TokenError) {
        try await begin(.guest(AuthUser(identifier: Random.name(), isGuest: true), at: configuration.clock()))
    }

    private func begin(_ record: SessionRecord) async throws(TokenError) {
        watch()
        do throws(TokenError) {
            let stored = try await store.begin(record)
            board.update { $0.take(stored) }
        } catch {
            // The session may have been stored, so the next call reads the storage.
            board.update { $0.doubt() }
            throw error
        }
        discardUnsaved(unless: record.session)
    }

    /// Ends the session locally, without telling the server. Returns whether there was one. Leaves nothing of
    /// the session in the storage. Throws `storage`; the session is then still stored.
    @discardableResult
    public func clearTokens() async throws(TokenError) -> Bool {
        let epoch = board.snapshot.epoch
        do throws(TokenError) {
            let ended = try await store.end()
            board.update { $0.end(ended.generation, since: epoch) }
            discardUnsaved(unless: board.snapshot.session?.record.session)
            return ended.existed
        } catch {
            board.update { $0.doubt() }
            throw error
        }
    }

    /// Ends one session locally, if it still belongs to the account: another user may have signed in. Throws
    /// `storage`.
    func clear(session: String) async throws(TokenError) {
        while let stored = try await store.read(), stored.record.session == session {
            if try await store.end(stored.generation) { break }
        }
        board.update { $0.doubt() }
        _ = try? await load()
    }

    /// Revokes the present session at the server and ends it locally. Where the lease is a file, waits for a
    /// running refresh in any process and also revokes its tokens. A sign-in during the call keeps its
    /// session.
    ///
    /// Throws `storage` when the session could not be ended. Throws `notRevoked` when it was ended locally
    /// and the revocation at the server failed. `notRevoked` also covers newer tokens of a refresh whose
    /// answer was lost.
    public func revokeTokens() async throws(TokenError) {
        let hold: LeaseHold?
        if let unsaved, let held = unsaved.hold {
            hold = held
        } else {
            hold = try? await transaction.lease.take(within: configuration.leaseTimeout)
        }
        defer { withExtendedLifetime(hold) {} }
        var failure: RefreshFailure?
        var session: String?
        do throws(TokenError) {
            while let stored = try await store.read(),
                stored.record.session == session ?? stored.record.session
            {
                session = stored.record.session
                if let revoke, !stored.record.isWithoutTokens {
                    var tokens = [stored.record.tokens]
                    if let unsaved, unsaved.record.session == session { tokens.append(unsaved.record.tokens) }
                    for tokens in tokens {
                        if case .failure(let reason) = await configuration.bounded({
                            try await revoke(tokens)
                        }) {
                            failure = reason
                        }
                    }
                }
                // If a refresh has replaced the record, its tokens are revoked next.
                if try await store.end(stored.generation) {
                    let isKnown = stored.record.intent == nil || unsaved?.record.session == session
                    if revoke != nil, !isKnown, failure == nil { failure = RefreshFailure(.timedOut) }
                    break
                }
            }
        } catch {
            guard case .unknownRecord = error else { throw error }
            failure = RefreshFailure(.refused("unknown_record"))
            try await clearTokens()
        }
        board.update { $0.doubt() }
        _ = try? await load()
        if let failure { throw .notRevoked(failure) }
    }

    /// Discards tokens that could not be stored, unless they belong to `session`.
    func discardUnsaved(unless session: String?) {
        guard let unsaved, unsaved.record.session != session else { return }
        self.unsaved = nil
        transaction.revokeLater(unsaved.record.tokens)
    }
}
