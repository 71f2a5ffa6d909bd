internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The steps of a refresh that is carried out, in their order: what a test stops at.
package enum RefreshStep: String, Sendable, CaseIterable {
    /// The lease is held, and the record was read under it.
    case leaseTaken
    /// The intent is stored, the request is not sent.
    case intentStored
    /// The answer is here, nothing of it is stored.
    case answered
    /// The new tokens are stored, nobody was told.
    case saved
}

/// One refresh of one account: the only place where a refresh token is sent.
///
/// 1. Take the lease, and read what is stored now: another process may have done it all.
/// 2. Store an intent beside the old tokens, and only then send the refresh token.
/// 3. Store the new tokens in place of the old ones, if those are still there. Only then does anybody see them. After a
///    sign-out or another sign-in in between they are not, and the late answer is not stored.
///
/// A process that ends in between leaves the intent behind. Who finds it knows that the token may have been used, and
/// tries it once: a server that allows that answers with tokens, another one ends the session.
struct RefreshTransaction: Sendable {
    let store: SessionStore
    let lease: LeaseTaker
    let configuration: TokenManager.Configuration
    let provider: RefreshRequestProvider
    let revoke: RevokeRequestProvider?

    /// How a transaction ends.
    enum Ending: Sendable {
        /// What is stored satisfies the demand, or is as new as the server makes it (`isNew`).
        case current(StoredSession, isNew: Bool)
        /// New tokens are here and could not be stored.
        case unsaved(UnsavedSession, TokenStorageError)
    }

    /// How often what is stored is looked at anew since somebody else changed it.
    private static let rounds = 100

    private var now: Date { configuration.clock() }

    /// Gets what `demand` asks for. Throws the errors of ``TokenManager/validAccessToken()``.
    func run(_ demand: TokenRequirement) async throws(TokenError) -> Ending {
        let hold = try await lease.take(within: configuration.leaseTimeout)
        await configuration.step(.leaseTaken)
        var others = ForeignIntents(hold: hold)
        for _ in 0..<Self.rounds {
            let stored = try await stored(for: demand)
            let judgement = TokenExpiryPolicy(configuration, at: now, shift: demand.shift)
            if judgement.satisfies(demand, stored.record) { return .current(stored, isNew: false) }
            guard let sent = stored.record.tokens.refreshSecret else { throw .refreshTokenMissing }
            guard judgement.isRefreshable(stored.record) else { throw .refreshTokenExpired }
            try checkLoss(stored.record, since: demand.begun)
            try checkPause(stored.record)
            if let intent = stored.record.intent, await others.wait(for: intent, now: now) { continue }
            var record = stored.record
            let isRetry = record.intent != nil
            let intent = RefreshIntent(
                begun: now.timeIntervalSince1970, seconds: configuration.intentSeconds, lock: hold.name,
                lost: record.intent?.lost)
            record.intent = intent
            others.own.insert(intent.name)
            guard let begun = try await replace(stored, with: record) else { continue }
            await configuration.step(.intentStored)
            let (start, pending) = (now, begun.record)
            let answer = await ask(
                RefreshRequest(
                    account: store.account, refreshToken: sent.text, scope: record.tokens.scope,
                    idToken: record.tokens.idToken, source: record.source,
                    isRetryOfUnknownOutcome: isRetry)
            ) { late in
                // Nobody waits any more, and the lease may be another's: it is stored if the old tokens are still there.
                _ = try? await save(
                    UnsavedSession(
                        record: pending.refreshed(by: late, begun: start), sent: sent,
                        replacing: begun.generation,
                        hold: nil))
            }
            await configuration.step(.answered)
            switch answer {
            case .success(let response):
                return try await save(
                    UnsavedSession(
                        record: pending.refreshed(by: response, begun: start), sent: sent,
                        replacing: begun.generation, hold: hold))
            case .failure(let failure):
                try await settle(failure, begun, isRetry: isRetry)
            }
        }
        throw .timedOut
    }

    private func stored(for demand: TokenRequirement) async throws(TokenError) -> StoredSession {
        // Ended meanwhile, by the provider or by somebody who signed out.
        guard let stored = try await store.read() else { throw .tokenNotFound }
        guard stored.record.session == demand.session else { throw .sessionChanged }
        return stored
    }

    /// Throws what became of another's request that ended while this call waited: it would send the same token again, as each
    /// of those who wait would then. One whose connection broke is sent once more, by whoever comes first.
    private func checkLoss(_ record: SessionRecord, since begun: Date) throws(TokenError) {
        guard let lost = record.intent?.lost, lost.isLate || lost.count > 1,
            lost.end > begun.timeIntervalSince1970,
            // Clocks of two machines are not compared: one that is ahead keeps nobody away.
            lost.end <= now.timeIntervalSince1970 + TokenExpiryPolicy.clockLeeway
        else { return }
        throw .refreshFailed(RefreshFailure(lost.isLate ? .timedOut : .interrupted), retryAfter: nil)
    }

    private func checkPause(_ record: SessionRecord) throws(TokenError) {
        guard let pause = record.pause else { return }
        let end = Date(timeIntervalSince1970: pause.until)
        // One further away than any that is ever stored is that of a clock that was set since, and so is one that began in the
        // future.
        guard end > now, end < now.addingTimeInterval(RefreshBackOff.longestAsked * 2),
            (pause.begun ?? 0) <= now.timeIntervalSince1970 + TokenExpiryPolicy.clockLeeway
        else { return }
        throw .refreshFailed(RefreshFailure(.throttled), retryAfter: end)
    }

    /// Replaces what was read. `nil` when all is to be looked at anew.
    private func replace(
        _ stored: StoredSession, with record: SessionRecord
    ) async throws(TokenError) -> StoredSession? {
        do throws(TokenError) {
            return try await store.replace(stored.generation, with: record)
        } catch {
            guard case .storage(let reason) = error, reason.code == .outcomeUnknown else { throw error }
            guard let now = try await store.read(), now.record.intent?.name == record.intent?.name else {
                return nil
            }
            return now
        }
    }

    private func ask(
        _ request: RefreshRequest, late: @escaping @Sendable (TokenRefreshResponse) async -> Void
    ) async -> Result<TokenRefreshResponse, RefreshFailure> {
        let provider = provider
        return await configuration.bounded {
            guard let response = try await provider(request).usable else {
                // A success, whoever asked: the token that was sent for it is not sent again by the same call.
                throw RefreshFailure(.unusable(200))
            }
            return response
        } late: {
            await late($0)
        }
    }

    /// Stores what is known after a failure, and throws it, unless the record was changed meanwhile, so that all is to be
    /// looked at anew.
    private func settle(
        _ failure: RefreshFailure, _ begun: StoredSession, isRetry: Bool
    ) async throws(TokenError) {
        if failure.kind == .invalidGrant {
            if try await store.end(begun.generation) { throw .sessionExpired }
            // Others who sent the same token may have been told the same first.
            if try await store.read() == nil { throw .sessionExpired }
            return
        }
        var record = begun.record
        // A request that was lost before stays so, whatever became of the one after it.
        if isRetry || failure.leavesOutcomeUnknown {
            record.intent?.isOver = true
            if failure.isLost {
                let before = min(max(record.intent?.lost?.count ?? 0, 0), 1_000)
                record.intent?.lost = LostRequest(
                    end: now.timeIntervalSince1970, count: before + 1, isLate: failure.isLate)
            }
        } else {
            record.intent = nil
        }
        let failures = min(max(record.pause?.failures ?? 0, 0), 1_000) + 1
        record.pause = configuration.backOff.pause(after: failure, failures: failures, now: now)
        guard try await store.replace(begun.generation, with: record) != nil else { return }
        throw .refreshFailed(failure, retryAfter: record.pause.map { Date(timeIntervalSince1970: $0.until) })
    }
}

extension SessionRecord {
    fileprivate func refreshed(by response: TokenRefreshResponse, begun: Date) -> SessionRecord {
        var record = self
        record.tokens = tokens.refreshed(by: response, begun: begun)
        record.obtained = begun.timeIntervalSince1970
        record.intent = nil
        record.pause = nil
        return record
    }
}
