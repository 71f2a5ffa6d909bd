internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The outcome of the one refresh that ran.
struct RefreshFlight: Sendable {
    /// The session of the refresh; an error, too, belongs to this session.
    let session: String
    let outcome: Result<Renewal, TokenError>

    struct Renewal: Sendable {
        let stored: StoredSession
        /// Whether the server was asked for this token: there is no fresher one.
        let isNew: Bool
    }
}

extension TokenManager {
    func knownSession() async throws(TokenError) -> StoredSession {
        guard let stored = try await load(), !stored.record.isWithoutTokens else { throw .tokenNotFound }
        return stored
    }

    func judgement() -> TokenExpiryPolicy {
        TokenExpiryPolicy(configuration, at: configuration.clock(), shift: board.snapshot.shift)
    }

    func session() async throws(TokenError) -> StoredSession {
        let known = try await knownSession()
        if unsaved == nil, judgement().isFresh(known.record) { return known }
        let demand = TokenRequirement(
            session: known.record.session, shift: board.snapshot.shift, begun: configuration.clock())
        let isUsable = unsaved == nil && judgement().isUsable(known.record)
        do throws(TokenError) {
            // A token that is still good is not worth waiting for an unavailable server.
            return try await obtain(demand, patience: isUsable ? .zero : configuration.retryDeadline)
        } catch {
            switch error {
            case .refreshFailed, .timedOut, .storage: break
            default: throw error
            }
            guard isUsable, judgement().isUsable(known.record),
                board.snapshot.session.map({ $0.record.session == known.record.session }) ?? true
            else { throw error }
            return board.snapshot.session ?? known
        }
    }

    /// Returns a session that satisfies `demand`, by way of the one refresh that runs.
    func obtain(_ demand: TokenRequirement, patience: Duration? = nil) async throws(TokenError)
        -> StoredSession
    {
        var attempts = RefreshAttempts(configuration)
        var strangers = 0
        while true {
            let flight = try await coordinator.value { [self] () async throws(TokenError) in
                await renew(demand)
            }
            guard flight.session == demand.session else {
                // The refresh belonged to another session.
                strangers += 1
                if strangers > 10 { throw .timedOut }
                continue
            }
            attempts.begun += 1
            switch flight.outcome {
            case .success(let renewal):
                guard renewal.stored.record.session == demand.session else { throw .sessionChanged }
                // The refresh may have run for another caller with a weaker demand.
                if renewal.isNew || attempts.wasLast
                    || judgement().satisfies(demand, renewal.stored.record)
                {
                    return renewal.stored
                }
            case .failure(let error):
                let pause = try attempts.pause(after: error, atMost: patience ?? configuration.retryDeadline)
                do { try await configuration.sleep(pause) } catch { throw .cancelled }
            }
        }
    }

    /// Runs the one refresh.
    private func renew(_ demand: TokenRequirement) async -> RefreshFlight {
        do throws(TokenError) {
            let ending: RefreshTransaction.Ending
            if let unsaved, unsaved.record.session == demand.session {
                self.unsaved = nil
                ending = try await transaction.save(unsaved)
            } else {
                ending = try await transaction.run(demand)
            }
            switch ending {
            case .current(let stored, let isNew):
                board.update { $0.take(stored) }
                return RefreshFlight(
                    session: demand.session,
                    outcome: .success(RefreshFlight.Renewal(stored: stored, isNew: isNew)))
            case .unsaved(let session, let error):
                unsaved = session
                keepSaving(demand)
                throw .notSaved(error)
            }
        } catch {
            switch error {
            case .sessionChanged, .sessionExpired, .tokenNotFound:
                board.update { $0.doubt() }
                _ = try? await load()
            default: break
            }
            return RefreshFlight(session: demand.session, outcome: .failure(error))
        }
    }

    /// Retries in the background to store the unsaved tokens, since other processes wait for the lease.
    private func keepSaving(_ demand: TokenRequirement) {
        guard saving == nil else { return }
        saving = Task { [weak self] in
            var pause = Duration.seconds(1)
            while (try? await Task.sleep(for: pause)) != nil, await self?.saveAgain(demand) == false {
                pause = min(pause * 2, .seconds(60))
            }
        }
    }

    /// Stores the unsaved tokens. Returns whether nothing is left to store.
    private func saveAgain(_ demand: TokenRequirement) async -> Bool {
        if unsaved != nil {
            _ = try? await coordinator.value { [self] () async throws(TokenError) in await renew(demand) }
        }
        if unsaved == nil { saving = nil }
        return unsaved == nil
    }
}
