internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

extension TokenManager {
    func knownSession() async throws(TokenError) -> StoredSession {
        guard let stored = try await load(), !stored.record.isWithoutTokens else { throw .tokenNotFound }
        return stored
    }

    func judgement() -> TokenJudgement {
        TokenJudgement(configuration, at: configuration.clock(), skew: board.snapshot.skew)
    }

    func session() async throws(TokenError) -> StoredSession {
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
    func obtain(_ demand: TokenDemand) async throws(TokenError) -> StoredSession {
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
}
