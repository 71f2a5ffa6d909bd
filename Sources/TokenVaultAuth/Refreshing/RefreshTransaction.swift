internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The steps of a refresh in their order, at which a test can stop.
package enum RefreshStep: String, Sendable, CaseIterable {
    /// The lease is held, and the record was read under it.
    case leaseTaken
    /// The intent is stored; the request is not sent.
    case intentStored
    /// The response arrived; nothing of it is stored.
    case answered
    /// The new tokens are stored; no reader has them yet.
    case saved
}

/// One refresh of one account: the only place where a refresh token is sent.
///
/// 1. Take the lease, and read the stored session: another process may already have refreshed it.
/// 2. Store an intent beside the old tokens, and only then send the refresh token.
/// 3. Store the new tokens in place of the old tokens, and only then give them to callers. After a sign-out
///    or another sign-in the old tokens are gone, and the late response is not stored.
///
/// A process that ends in between leaves the intent behind. The next process that finds the intent knows that
/// the token may have been used, and tries it once. The server then answers with tokens or ends the session.
struct RefreshTransaction: Sendable {
    let store: SessionStore
    let lease: LeaseTaker
    let configuration: TokenManager.Configuration
    let provider: RefreshRequestProvider
    let revoke: RevokeRequestProvider?

    /// The result of a transaction.
    enum Ending: Sendable {
        /// The stored session satisfies the demand, or the server has just refreshed it (`isNew`).
        case current(StoredSession, isNew: Bool)
        /// New tokens arrived and could not be stored.
        case unsaved(UnsavedSession, TokenStorageError)
    }

    /// The largest number of reads after other processes changed the record.
    private static let rounds = 100

    private var now: Date { configuration.clock() }

    /// Returns a session that satisfies `demand`. Throws the errors of ``TokenManager/validAccessToken()``.
    func run(_ demand: TokenRequirement) async throws(TokenError) -> Ending {
        let hold = try await lease.taken(within: configuration.leaseTimeout)
        await configuration.step(.leaseTaken)
        var others = ForeignIntents(hold: hold)
        for _ in 0..<Self.rounds {
            if Task.isCancelled { throw .cancelled }
            let stored = try await stored(for: demand)
            let judgement = TokenExpiryPolicy(configuration, at: now, shift: demand.shift)
            if judgement.satisfies(demand, stored.record) { return .current(stored, isNew: false) }
            guard stored.record.tokens.isRenewable else { throw .refreshTokenMissing }
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
            let request = RefreshRequest(
                account: store.account,
                refreshToken: record.tokens.isOfClient ? "" : record.tokens.refreshToken ?? "",
                scope: record.tokens.clientScopes?.joined(separator: " ") ?? record.tokens.scope,
                idToken: record.tokens.idToken, source: record.source,
                subject: record.source.flatMap { _ in record.user?.identifier },
                dpopKey: record.tokens.dpopKey,
                isRetryOfUnknownOutcome: isRetry)
            let answer = await configuration.bounded { [provider] in
                try await provider(request).usable()
            } late: { late in
                // No caller waits any more, and another process may hold the lease. The new tokens are stored
                // only if the old tokens are still there.
                _ = try? await save(
                    UnsavedSession(
                        record: pending.refreshed(by: late, begun: start),
                        replaced: pending.tokens.replacedSecret,
                        replacing: begun.generation,
                        hold: nil))
            }
            await configuration.step(.answered)
            switch answer {
            case .success(let response):
                return try await save(
                    UnsavedSession(
                        record: pending.refreshed(by: response, begun: start),
                        replaced: pending.tokens.replacedSecret,
                        replacing: begun.generation, hold: hold))
            case .failure(let failure):
                try await settle(failure, begun, isRetry: isRetry)
            }
        }
        throw .timedOut
    }

    private func stored(for demand: TokenRequirement) async throws(TokenError) -> StoredSession {
        // The provider or a sign-out may have ended the session.
        guard let stored = try await store.read() else { throw .tokenNotFound }
        guard stored.record.session == demand.session else { throw .sessionChanged }
        return stored
    }

    /// Throws the failure of another process's request that ended while this call waited. Otherwise each
    /// waiting call would send the same token again. After a broken connection, the first waiting call sends
    /// it once more.
    private func checkLoss(_ record: SessionRecord, since begun: Date) throws(TokenError) {
        guard let lost = record.intent?.lost, lost.isLate || lost.count > 1,
            lost.end > begun.timeIntervalSince1970,
            // The clocks of two machines are not compared: a clock that is ahead blocks no other process.
            lost.end <= now.timeIntervalSince1970 + TokenExpiryPolicy.clockLeeway
        else { return }
        throw .refreshFailed(RefreshFailure(lost.isLate ? .timedOut : .interrupted), retryAfter: nil)
    }

    private func checkPause(_ record: SessionRecord) throws(TokenError) {
        guard let pause = record.pause else { return }
        let end = Date(timeIntervalSince1970: pause.until)
        // A pause that is longer than any stored pause, or that began in the future, comes from a clock that
        // was changed later.
        guard end > now, end < now.addingTimeInterval(RefreshBackOff.longestAsked * 2),
            (pause.begun ?? 0) <= now.timeIntervalSince1970 + TokenExpiryPolicy.clockLeeway
        else { return }
        throw .refreshFailed(RefreshFailure(.throttled), retryAfter: end)
    }

    /// Replaces the record that was read. Returns `nil` when the storage has to be read again.
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

    /// Stores the state after a failure, and throws the failure. Returns if the record was changed meanwhile,
    /// so that the storage has to be read again.
    private func settle(
        _ failure: RefreshFailure, _ begun: StoredSession, isRetry: Bool
    ) async throws(TokenError) {
        if failure.kind == .invalidGrant {
            if try await store.end(begun.generation) { throw .sessionExpired }
            // Another process that sent the same token may have got the same answer first.
            if try await store.read() == nil { throw .sessionExpired }
            return
        }
        var record = begun.record
        // An earlier lost request still counts as lost, regardless of the outcome of this one.
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
        // A request that this process cannot make says nothing about those of other processes.
        if failure.kind != .refused("cannot_ask") {
            let failures = min(max(record.pause?.failures ?? 0, 0), 1_000) + 1
            record.pause = configuration.backOff.pause(after: failure, failures: failures, now: now)
        }
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
