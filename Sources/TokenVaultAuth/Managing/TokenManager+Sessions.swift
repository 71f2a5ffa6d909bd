internal import TokenVault
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

extension TokenManager {
    /// Begins a session with `tokens` in place of the one that is there. A refresh of that one which is under way is not
    /// stored any more. Readers of ``tokenStream`` see it when it is stored. Throws `malformed` for tokens, a type or
    /// scopes that no header can carry, `storage`.
    public func updateTokens(_ tokens: TokenInfo, user: AuthUser? = nil) async throws(TokenError) {
        try tokens.requireUsable()
        try await begin(.beginning(tokens, user: user, at: configuration.clock()))
    }

    /// Begins a session of a guest that no server knows of, in place of the one that is there: it lasts until it is cleared,
    /// and gives no access token. Throws `storage`.
    public func beginGuestSession() async throws(TokenError) {
        try await begin(.guest(AuthUser(identifier: Random.name(), isGuest: true), at: configuration.clock()))
    }

    private func begin(_ record: SessionRecord) async throws(TokenError) {
        watch()
        do throws(TokenError) {
            let stored = try await store.begin(record)
            board.update { $0.take(stored) }
        } catch {
            // It may have been stored: the next call looks.
            board.update { $0.doubt() }
            throw error
        }
        discardUnsaved(unless: record.session)
    }

    /// Ends the session here; the server is not told. Whether there was one. Nothing of it is left in the storage. Throws
    /// `storage`: the session is still there then.
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

    /// Ends one session here, if it is still the account's: somebody else may have signed in. Throws `storage`.
    func clear(session: String) async throws(TokenError) {
        while let stored = try await store.read(), stored.record.session == session {
            if try await store.end(stored.generation) { break }
        }
        board.update { $0.doubt() }
        _ = try? await load()
    }

    /// Tells the server that the session of now is over and ends it here. A refresh that is under way, in any process, is
    /// waited for where the lease is a file, and what it brings is revoked as well. Who signs in meanwhile stays signed in.
    /// Throws `storage` when the session could not be ended, `notRevoked` when it was ended here and the server could not
    /// be told, also of newer tokens that a refresh may have brought whose answer was lost.
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
                // What a refresh has put in its place meanwhile is revoked next.
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

    /// Lets go of tokens that could not be stored, unless they are of `session`.
    func discardUnsaved(unless session: String?) {
        guard let unsaved, unsaved.record.session != session else { return }
        self.unsaved = nil
        transaction.revokeLater(unsaved.record.tokens)
    }
}
