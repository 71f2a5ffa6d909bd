internal import Synchronization
internal import TokenVault
package import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// One renewal of a profile's session, for a program that runs for one token: *requested → received → stored,
/// revoked or reported*. The request itself, with its lease and its intent, is a ``RefreshTransaction``.
///
/// New tokens may fail to be stored, for example because the vault locked meanwhile. The attempts then continue for a
/// minute, or most of the remaining time, or until a cancellation of the task. After that the tokens are lost, but not
/// revoked. The stored intent shows that a renewal was begun. A provider that allows another try issues tokens for the
/// same session again. Tokens of a session that ended meanwhile are revoked.
package struct RenewalTransaction<Provider: SessionProvider>: Sendable {
    package let provider: Provider
    package let place: ProfileStore
    /// The name of the profile.
    package let name: String
    package let profile: Profile
    package var configuration: TokenManager.Configuration
    package var deadline: Deadline?
    var clock = TransactionClock.machine
    /// Gets each state as it begins.
    package var entered: @Sendable (TransactionState) -> Void = { _ in }
    /// Gets the reason when new tokens cannot be stored yet.
    package var waiting: @Sendable (TokenError) -> Void = { _ in }

    package init(
        _ provider: Provider, _ place: ProfileStore, _ name: String, _ profile: Profile,
        _ configuration: TokenManager.Configuration
    ) {
        self.provider = provider
        self.place = place
        self.name = name
        self.profile = profile
        self.configuration = configuration
    }

    /// The outcome of a renewal.
    package struct Outcome: Sendable {
        /// The tokens, or the reason that there are none.
        package fileprivate(set) var tokens: Result<TokenInfo, TokenError> = .failure(.cancelled)
        /// The failure of the last request that brought no tokens.
        package fileprivate(set) var failure: Provider.Failure?
        /// Whether a request was sent to the provider.
        package fileprivate(set) var hasAsked = false
        /// Whether the session is of another provider or client than the profile's, and was not sent.
        package fileprivate(set) var isOfOtherSource = false
        /// Whether the provider may have issued tokens that were lost with an answer, to this request or to an
        /// earlier one.
        package fileprivate(set) var mayHaveLost = false
        /// Whether the provider gave tokens that are not stored.
        package var hasUnstored: Bool { obtained != nil }
        /// The result of revoking them, if the session ended meanwhile.
        package fileprivate(set) var revocation: Revocation<Provider.Failure>?

        /// The tokens that the provider gave and that are not stored. A refresh token is left out if it equals
        /// the one in the request.
        fileprivate var obtained: TokenInfo?
    }

    /// The longest time for a request.
    package static var requestLimit: Duration { .seconds(29) }

    /// Returns tokens in place of `stored`: ones that are good for longer than the buffer, or with `isForced`
    /// any newer ones.
    ///
    /// While the provider cannot be asked, returns the stored tokens as long as they are still good, unless
    /// `isForced`.
    package func run(replacing stored: StoredToken, isForced: Bool) async -> Outcome {
        let facts = Facts<Outcome>(Outcome())
        let time = TransactionTime(until: deadline, clock: clock)
        let result: Result<TokenInfo, TokenError>
        do throws(TokenError) {
            let demand = TokenRequirement(
                session: stored.record.session, refused: isForced ? stored.tokens.accessSecret : nil,
                shift: 0, begun: configuration.clock())
            let isUsable = !isForced && stored.isUsable
            let patience = isUsable ? Duration.zero : time.limit(configuration.retryDeadline)
            let renewed = try await renew(demand, patience, facts, time)
            facts.update { $0.obtained = nil }
            entered(.settled)
            result = .success(renewed.record.tokens)
        } catch {
            result = fallBack(on: stored, isForced: isForced || facts.value.hasUnstored, after: error)
        }
        var outcome = facts.value
        outcome.tokens = result
        if case .failure(.sessionChanged) = result, let lost = outcome.obtained {
            outcome.revocation = await provider.revokeUnused(lost, of: profile, until: deadline)
        }
        return outcome
    }

    private func fallBack(
        on stored: StoredToken, isForced: Bool, after error: TokenError
    ) -> Result<TokenInfo, TokenError> {
        switch error {
        case .refreshFailed, .timedOut, .storage:
            let judgement = TokenExpiryPolicy(configuration, at: configuration.clock(), shift: 0)
            guard !isForced, !Task.isCancelled, judgement.isUsable(stored.record) else { break }
            return .success(stored.tokens)
        default: break
        }
        return .failure(error)
    }

    private func renew(
        _ demand: TokenRequirement, _ patience: Duration, _ facts: Facts<Outcome>, _ time: TransactionTime
    ) async throws(TokenError) -> StoredSession {
        let transaction = transaction(facts, time)
        var attempts = RefreshAttempts(transaction.configuration)
        while true {
            attempts.begun += 1
            let pause: Duration
            do throws(TokenError) {
                switch try await transaction.run(demand) {
                case .current(let stored, _): return stored
                case .unsaved(let session, let error):
                    return try await save(session, after: error, transaction, time)
                }
            } catch {
                pause = try attempts.pause(after: error, atMost: patience)
                // Without time for another request, this error is the result: the timeout of that request
                // would hide it.
                if let deadline, deadline.remaining <= pause { throw error }
            }
            await time.pause(pause)
        }
    }

    /// Stores the new tokens, which could not be stored yet.
    private func save(
        _ session: UnsavedSession, after error: TokenStorageError, _ transaction: RefreshTransaction,
        _ time: TransactionTime
    ) async throws(TokenError) -> StoredSession {
        var session = session
        var error: TokenStorageError? = error
        let isWorthRetrying = { (error: TokenError) in
            switch error {
            case .notSaved, .storage: true
            default: false
            }
        }
        return try await time.storing(isWorthRetrying, waiting: waiting) { () async throws(TokenError) in
            if let error = error.take() { throw .notSaved(error) }
            switch try await transaction.save(session) {
            case .current(let stored, _): return stored
            case .unsaved(let next, let error):
                session = next
                throw .notSaved(error)
            }
        }
    }

    private func transaction(_ facts: Facts<Outcome>, _ time: TransactionTime) -> RefreshTransaction {
        var configuration = configuration
        configuration.lease = place.lease
        // The provider's own limit comes first, so that its answer still arrives.
        configuration.refreshTimeout = Self.requestLimit + .seconds(4)
        configuration.leaseTimeout = time.limit(configuration.leaseTimeout)
        let storage = BoundedStorage(place.storage, time)
        return RefreshTransaction(
            store: SessionStore(storage: storage, account: name, policy: nil),
            lease: LeaseTaker(place.lease, storage: place.storage, account: name),
            configuration: configuration,
            provider: { try await ask($0, facts, time) }, revoke: nil)
    }

    private func ask(
        _ request: RefreshRequest, _ facts: Facts<Outcome>, _ time: TransactionTime
    ) async throws(RefreshFailure) -> TokenRefreshResponse {
        // The stored source decides, so that tokens go only to the provider that issued them.
        guard request.source == profile.source else {
            facts.update { $0.isOfOtherSource = true }
            throw RefreshFailure(.refused("cannot_ask"))
        }
        guard !Task.isCancelled, !(deadline?.hasPassed ?? false) else { throw RefreshFailure(.notSent) }
        facts.update {
            $0.hasAsked = true
            if request.isRetryOfUnknownOutcome { $0.mayHaveLost = true }
        }
        do throws(Provider.Failure) {
            let response = try await provider.refresh(
                request, of: profile, within: time.limit(Self.requestLimit))
            time.beginStoring()
            let isRotated = response.refreshToken != request.refreshToken
            facts.update {
                $0.obtained = TokenInfo(
                    accessToken: response.accessToken, refreshToken: isRotated ? response.refreshToken : nil)
            }
            return response
        } catch {
            time.noteAnswer()
            let failure = error.refreshFailure
            facts.update {
                $0.failure = error
                if failure.leavesOutcomeUnknown { $0.mayHaveLost = true }
            }
            throw failure
        }
    }
}

/// What became known during a transaction.
private final class Facts<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value { state.withLock { $0 } }
    func update(_ change: (inout Value) -> Void) { state.withLock { change(&$0) } }
}
