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

/// What a caller needs.
struct TokenDemand: Sendable {
    /// The session that the caller began with; `nil` for any.
    var session: String?
    /// An access token that was refused, so that another one is needed whatever its expiry says.
    var refused: Secret?
    /// The server's clock less this machine's, as it was seen last, in seconds.
    var skew: Double?
}

/// One refresh of one account: the only place where a refresh token is sent.
///
/// 1. Take the lease, and read what is stored now: another process may have done it all.
/// 2. Store an intent beside the old tokens, and only then send the refresh token.
/// 3. Store the new tokens in place of the record with that intent, if it is still there. Only then does anybody see
///    them. A sign-out or another sign-in in between has changed the generation: the late answer is not stored.
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
        /// What is stored satisfies the demand.
        case current(StoredSession)
        /// New tokens are here and could not be stored.
        case unsaved(UnsavedSession, TokenStorageError)
    }

    private var now: Date { configuration.clock() }

    /// Gets what `demand` asks for. Throws the errors of ``TokenManager/validAccessToken()``.
    func run(_ demand: TokenDemand) async throws(TokenError) -> Ending {
        var demand = demand
        let hold = try await lease.take(within: configuration.leaseTimeout)
        await configuration.step(.leaseTaken)
        while true {
            let stored = try await stored(for: demand)
            demand.session = stored.record.session
            if TokenJudgement(configuration, at: now, skew: demand.skew).satisfies(demand, stored.record) {
                return .current(stored)
            }
            let refreshSecret = try sendable(stored.record, demand)
            let pauseEnd = stored.record.pause.map { Date(timeIntervalSince1970: $0.until) }
            if let pauseEnd, pauseEnd > now,
                pauseEnd < now.addingTimeInterval(RefreshBackOff.longestAsked * 2)
            {
                throw .refreshFailed(RefreshFailure(.throttled), retryAfter: pauseEnd)
            }
            if let intent = stored.record.intent, isPending(intent, under: hold) {
                try? await Task.sleep(for: .milliseconds(20))
                continue
            }
            var record = stored.record
            let isRetry = record.intent != nil
            record.intent = RefreshIntent(until: now.timeIntervalSince1970 + configuration.intentSeconds)
            guard let begun = try await store.replace(stored.generation, with: record) else { continue }
            await configuration.step(.intentStored)
            let request = RefreshRequest(
                account: store.account, refreshToken: refreshSecret.text, scope: record.tokens.scope,
                isRetryOfUnknownOutcome: isRetry)
            let start = now
            let answer = await ask(request)
            await configuration.step(.answered)
            switch answer {
            case .success(let response):
                let unsaved = UnsavedSession(
                    record: record.refreshed(by: response, begun: start, ended: now),
                    replacing: begun.generation, hold: hold)
                return try await save(unsaved, demand)
            case .failure(let failure):
                if try await settle(failure, begun) { continue }
            }
        }
    }

    /// Stores tokens that are here already. A record that is not the one they were got for any more wins.
    func save(_ unsaved: UnsavedSession, _ demand: TokenDemand) async throws(TokenError) -> Ending {
        do throws(TokenError) {
            if let stored = try await store.replace(unsaved.replacing, with: unsaved.record) {
                await configuration.step(.saved)
                return .current(stored)
            }
        } catch {
            guard case .storage(let failure) = error else { throw error }
            return .unsaved(unsaved, failure)
        }
        // The session these tokens belong to is not the account's any more: they are not to stay good for nobody.
        if let revoke {
            let tokens = unsaved.record.tokens
            Task { try? await revoke(tokens) }
        }
        let current = try await stored(for: TokenDemand(session: unsaved.record.session))
        return .current(current)
    }

    private func stored(for demand: TokenDemand) async throws(TokenError) -> StoredSession {
        guard let stored = try await store.read() else {
            throw demand.session == nil ? .tokenNotFound : .sessionChanged
        }
        if let session = demand.session, session != stored.record.session { throw .sessionChanged }
        if stored.record.isWithoutTokens { throw .tokenNotFound }
        return stored
    }

    private func sendable(_ record: SessionRecord, _ demand: TokenDemand) throws(TokenError) -> Secret {
        guard let secret = record.tokens.refreshSecret else { throw .refreshTokenMissing }
        guard TokenJudgement(configuration, at: now, skew: demand.skew).isRefreshable(record) else {
            throw .refreshTokenExpired
        }
        return secret
    }

    /// Whether somebody else may still be waiting for the answer of that intent.
    private func isPending(_ intent: RefreshIntent, under hold: LeaseHold) -> Bool {
        if intent.isOver || hold.provesOthersEnded { return false }
        let left = intent.until - now.timeIntervalSince1970
        // A time further away than any that is ever stored is that of a clock that was set since.
        return left > 0 && left <= configuration.longestIntentSeconds
    }

    /// Asks the server. The answer is waited for also after the time is over: then it is cancelled, not abandoned.
    private func ask(_ request: RefreshRequest) async -> Result<TokenRefreshResponse, RefreshFailure> {
        let provider = provider
        return await configuration.bounded { try await provider(request) }.flatMap { response in
            let isUsable =
                Secret(utf8: response.accessToken).isTokenText
                && response.refreshToken.map { $0.isEmpty || Secret(utf8: $0).isTokenText } ?? true
            return isUsable
                ? .success(response) : .failure(RefreshFailure(.interrupted, serverDate: response.serverDate))
        }
    }

    /// Stores what is known after a failure. True when the record was changed meanwhile, so that all is to be looked at
    /// anew; throws the failure otherwise.
    private func settle(_ failure: RefreshFailure, _ begun: StoredSession) async throws(TokenError) -> Bool {
        if failure.kind == .invalidGrant {
            guard try await store.end(begun.generation) else { return true }
            throw .sessionExpired
        }
        var record = begun.record
        if failure.leavesOutcomeUnknown { record.intent?.isOver = true } else { record.intent = nil }
        if let date = failure.serverDate { record.noteServerDate(date, now: now) }
        if failure.isTemporary {
            let failures = min((record.pause?.failures ?? 0) + 1, 1_000)
            record.pause = configuration.backOff.pause(after: failure, failures: failures, now: now)
        } else {
            record.pause = nil
        }
        guard try await store.replace(begun.generation, with: record) != nil else { return true }
        throw .refreshFailed(failure, retryAfter: record.pause.map { Date(timeIntervalSince1970: $0.until) })
    }
}

/// Tokens that the server gave and that could not be stored yet. While it lives nobody else sends the old token, where
/// the lease is a file.
struct UnsavedSession: Sendable {
    let record: SessionRecord
    let replacing: Generation
    let hold: LeaseHold
}

extension SessionRecord {
    fileprivate func refreshed(by response: TokenRefreshResponse, begun: Date, ended: Date) -> SessionRecord {
        var record = self
        record.tokens = tokens.refreshed(by: response, begun: begun)
        record.obtained = begun.timeIntervalSince1970
        record.intent = nil
        record.pause = nil
        record.clockSkew = nil
        if let date = response.serverDate { record.noteServerDate(date, now: ended) }
        return record
    }

    /// Keeps how far the server's clock is ahead.
    fileprivate mutating func noteServerDate(_ date: Date, now: Date) {
        clockSkew = date.timeIntervalSince(now)
    }
}
