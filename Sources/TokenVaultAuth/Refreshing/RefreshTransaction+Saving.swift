internal import TokenVault

/// Tokens that the server issued and that could not be stored yet. Where the lease is a file, no other
/// process sends the old token while this value lives.
struct UnsavedSession: Sendable {
    let record: SessionRecord
    /// The token that the new tokens replace.
    let replaced: Secret
    /// The generation of the record to replace.
    var replacing: Generation
    let hold: LeaseHold?
}

extension RefreshTransaction {
    private enum Verdict {
        /// The new tokens are stored.
        case saved(StoredSession)
        /// The same session has newer tokens from another process.
        case superseded(StoredSession)
        /// The old tokens are stored, in a record of this generation.
        case open(Generation)
        /// The account no longer has the session.
        case gone
    }

    /// Stores new tokens as long as the tokens that were sent for them are still stored. A new label or
    /// another process's intent does not matter. Throws `sessionChanged` when the session is gone. In that
    /// case the new tokens are revoked.
    func save(_ unsaved: UnsavedSession) async throws(TokenError) -> Ending {
        var unsaved = unsaved
        var attempt = 0
        while true {
            attempt += 1
            var failure = TokenStorageError(.conflict, operation: "refresh", backend: "auth")
            var isKnown = true
            do throws(TokenError) {
                if let stored = try await store.replace(unsaved.replacing, with: unsaved.record) {
                    await configuration.step(.saved)
                    return .current(stored, isNew: true)
                }
            } catch {
                guard case .storage(let reason) = error, reason.code != .encodingFailed,
                    reason.code != .tooLarge
                else { throw error }
                failure = reason
                isKnown = reason.code == .outcomeUnknown
            }
            if isKnown {
                do throws(TokenError) {
                    switch try await verdict(unsaved) {
                    case .saved(let stored): return .current(stored, isNew: true)
                    case .superseded(let stored): return .current(stored, isNew: false)
                    case .open(let generation): unsaved.replacing = generation
                    case .gone:
                        revokeLater(unsaved.record.tokens)
                        throw .sessionChanged
                    }
                } catch {
                    guard case .storage(let reason) = error else { throw error }
                    failure = reason
                }
            }
            guard attempt < 5 else { return .unsaved(unsaved, failure) }
            try? await configuration.sleep(.milliseconds(10 << attempt))
        }
    }

    private func verdict(_ unsaved: UnsavedSession) async throws(TokenError) -> Verdict {
        guard let stored = try await store.read(), stored.record.session == unsaved.record.session else {
            return .gone
        }
        let (now, new) = (stored.record.tokens, unsaved.record.tokens)
        // A provider may give the same tokens again, with another expiry.
        if now == new { return .saved(stored) }
        return now.replacedSecret == unsaved.replaced ? .open(stored.generation) : .superseded(stored)
    }

    /// Revokes unused tokens in the background, if there is a way to.
    func revokeLater(_ tokens: TokenInfo) {
        guard let revoke else { return }
        Task.detached { [configuration] in _ = await configuration.bounded { try await revoke(tokens) } }
    }
}
