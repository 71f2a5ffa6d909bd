import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// The session of a profile. A `TokenManager` keeps the session and sends its requests through
/// `vaultctl-oauth`.
final class ProfileSession: Sendable {
    private let place: ProfileStore
    private let name: String
    private let provider: ProfileProvider
    private let configuration: TokenManager.Configuration

    private struct Asking {
        /// Whether `vaultctl-oauth` runs.
        var isUnderWay = false
        /// Whether no further request may start.
        var isOver = false
        /// The error of the last request, if it brought no answer.
        var trouble: OAuthProgram.WorkerError?
        /// The tokens that the last request brought. A refresh token is left out if it equals the one in the
        /// request.
        var obtained: TokenInfo?
        /// The time limit for storing those tokens.
        var saving: Saving?
        /// The reason that those tokens could not be stored, while the attempts continue.
        var obstacle: TokenStorageError?
        /// Whether a request was started.
        var hasAsked = false
        /// Whether the provider may have issued tokens that were lost, because the answer to this or an
        /// earlier request was lost.
        var mayHaveLost = false
        /// The number of started attempts, and the number of the last attempt that ended.
        var (begun, ended) = (0, 0)
        /// Whether no further attempt to store the tokens may start.
        var isLeaving = false
        /// The signal that is to end the program.
        var signal: CInt?
        /// Whether all work has ended.
        var hasEnded = false
    }

    private struct Saving {
        /// The end of the attempts.
        let end: Deadline
        /// The time to wait for an unfinished attempt after `end`.
        let patience: Duration

        /// Creates the limits from `left`, the rest of the command's time in seconds. The limits are never
        /// zero, because the provider may reject the previous tokens already.
        init(left: Double?) {
            end = Deadline(after: .seconds(max(1, min(60, (left ?? 60 / 0.7) * 0.7))))
            patience = .seconds(min(1, max(0.5, (left ?? 60) * 0.1)))
        }
    }

    /// The reason that the wait for a session ended.
    private enum Ending {
        case ended
        case timeIsOver
        case signal(CInt)
    }
    private let asking = Monitor(Asking())
    private let interruption: SignalGuard

    /// Creates the session of the profile `name`, without reading it.
    init(
        _ place: ProfileStore, _ name: String, _ provider: ProfileProvider,
        _ configuration: TokenManager.Configuration
    ) {
        self.place = place
        self.name = name
        self.provider = provider
        interruption = SignalGuard(meanwhile: "what the provider gives is being stored") { [asking] signal in
            asking.announce { $0.signal = signal }
        }
        var configuration = configuration
        configuration.lease = place.lease
        // The worker times out first, so that its answer still arrives.
        configuration.refreshTimeout = .seconds(ProfileProvider.usualLimit + 8)
        if let left = provider.deadline?.remaining {
            configuration.leaseTimeout = min(configuration.leaseTimeout, left)
        }
        self.configuration = configuration
    }

    /// Runs `body` with the token manager and returns the result. Throws a `CommandFailure`. `vaultctl-oauth`
    /// has ended when this function returns.
    ///
    /// New tokens may fail to be stored, for example because the vault locked meanwhile. The attempts then
    /// continue for a minute, or most of the remaining time, or until a signal ends the program.
    ///
    /// After that the tokens are lost, but not revoked. The stored intent shows that a renewal was started,
    /// and a provider that allows another try issues tokens for the same session again.
    func wait<Value: Sendable>(
        _ console: Console, for body: @escaping @Sendable (TokenManager) async throws(TokenError) -> Value
    ) throws(CommandFailure) -> Value {
        try interruption.during { () throws(CommandFailure) in try awaited(console, for: body) }
    }

    private func awaited<Value: Sendable>(
        _ console: Console,
        for body: @escaping @Sendable (TokenManager) async throws(TokenError) -> Value
    ) throws(CommandFailure) -> Value {
        let task = Tasks { [self] () async -> Result<Value, TokenError> in
            let outcome = await stored(body, by: manager)
            if case .success = outcome { interruption.noteSettled() }
            asking.announce { $0.hasEnded = true }
            return outcome
        }
        let ending = waitForEnd(console)
        if case .signal = ending {
            // No further request starts, and a running worker is ended, because it must not outlive this
            // program.
            endAsking()
            tellOfLoss(console, unlessStoredBy: task)
            throw .interrupted
        }
        let outcome: Result<Value, TokenError>?
        if case .ended = ending { outcome = task.wait(until: nil) } else { outcome = nil }
        let asked = asking.withLock { $0 }
        switch outcome {
        case .success(let value): return value
        case .failure(let error):
            let isGone = error == .sessionChanged || error == .tokenNotFound
            if isGone, asked.obtained == nil, asked.mayHaveLost { throw .lostRenewal }
            // The provider may have accepted the token in the lost renewal, and may reject it now for that
            // reason.
            if error == .sessionExpired, asked.mayHaveLost { throw .endedAfterLostRenewal(name) }
            if let lost = asked.obtained, error == .sessionChanged {
                provider.revokeUnused(
                    lost, "what the provider gave for a session that is none any more", console, interruption)
            }
            throw CommandFailure(error, asked.trouble, name)
        case nil:
            guard asked.obtained == nil else { throw .notStoredInTime(name) }
            guard asked.hasAsked else { throw CommandFailure(.timedOut, asked.trouble, name) }
            let failure = asked.trouble?.refreshFailure ?? RefreshFailure(.timedOut)
            throw CommandFailure(.refreshFailed(failure, retryAfter: nil), asked.trouble, name)
        }
    }

    /// Reports the tokens that are lost with the program, unless the running attempt stores them.
    private func tellOfLoss<Value>(
        _ console: Console, unlessStoredBy task: Tasks<Result<Value, TokenError>>
    ) {
        let obtained = asking.announce { asking in
            asking.isLeaving = true
            return asking.obtained
        }
        guard obtained != nil else {
            // The provider may have answered after this program stopped listening.
            if asking.withLock({ $0.trouble == .interrupted || $0.mayHaveLost }) {
                console.note(CommandFailure.endedRenewal(name))
            }
            return
        }
        if case .success = task.wait(until: Deadline(after: .seconds(1))) { return }
        console.note(
            "the provider gave new tokens that could not be stored and are lost: "
                + CommandFailure.nextTry(name))
    }

    /// Runs `body` until its new tokens are stored. The manager keeps the tokens and requests no others.
    private func stored<Value: Sendable>(
        _ body: @Sendable (TokenManager) async throws(TokenError) -> Value, by manager: TokenManager
    ) async -> Result<Value, TokenError> {
        var unsaved: TokenStorageError?
        while true {
            let attempt = asking.withLock { asking in
                asking.begun += 1
                return asking.begun
            }
            defer { asking.announce { $0.ended = attempt } }
            do throws(TokenError) { return .success(try await body(manager)) } catch {
                switch error {
                case .notSaved(let reason):
                    unsaved = reason
                    asking.announce { $0.obstacle = reason }
                // The session cannot be read either, or other processes held the lease too long.
                case .storage where unsaved != nil, .timedOut where unsaved != nil: break
                default: return .failure(error)
                }
            }
            // The waiting thread sets the end, because it detects times when the process was suspended.
            if !isWanted(unsaved) { break }
            try? await Task.sleep(for: .milliseconds(250))
            if !isWanted(unsaved) { break }
        }
        return .failure(unsaved.map { .notSaved($0) } ?? .cancelled)
    }

    /// Whether to try again to store tokens that could not be stored because of `unsaved`.
    private func isWanted(_ unsaved: TokenStorageError?) -> Bool {
        asking.withLock { unsaved != nil && $0.saving != nil && !$0.isLeaving }
    }

    /// Waits for the end of the work, a signal or the deadline. Also reports an obstacle to storing new
    /// tokens, which the user may be able to remove.
    private func waitForEnd(_ console: Console) -> Ending {
        var end = provider.deadline
        var (isSaving, isTold, hasGivenUp) = (false, false, false)
        // The time to wait once no further attempt may start.
        var patience: Duration?
        // The attempt to wait for after a suspension, and the number of extensions that are left.
        var (due, delays) = (0, 5)
        // The deadline of the next look. If the look is much later, the process was suspended.
        var look = Deadline(after: SignalGuard.slice)
        while true {
            switch event(until: end, isSaving: isSaving, isTold: isTold, next: &look) {
            case .ending(let ending): return ending
            case .obstacle(let reason):
                isTold = true
                let failure = CommandFailure(reason)
                console.note(
                    "the provider gave new tokens that cannot be stored yet; it is tried for up to a minute: "
                        + "\(failure.happened): \(failure.advice)")
            case .saving(let saving):
                isSaving = true
                patience = saving.patience
                guard saving.end.hasPassed else {
                    end = saving.end
                    continue
                }
                due = asking.withLock { $0.begun + 1 }
                end = Deadline(after: Self.oneMore)
            case .wasAway:
                // The suspension may have used up all of the time, so at least one more attempt is made.
                due = asking.announce { asking in
                    asking.isLeaving = false
                    return asking.begun + 1
                }
                patience = patience ?? .milliseconds(500)
                if let left = end?.remaining, left < Self.oneMore { end = Deadline(after: Self.oneMore) }
            case nil:
                if asking.withLock({ $0.ended }) < due, delays > 0 {
                    delays -= 1
                    end = Deadline(after: Self.oneMore)
                    continue
                }
                if let last = patience.take() {
                    asking.announce { $0.isLeaving = true }
                    end = Deadline(after: last)
                    continue
                }
                if isSaving || hasGivenUp { return .timeIsOver }
                hasGivenUp = true
                endAsking()
                // The outcome of the request is still stored, so that no other process has to wait for it.
                end = Deadline(after: .seconds(1))
            }
        }
    }

    /// The shortest time to store new tokens after a suspension. The time is extended while no attempt since
    /// then has ended.
    private static let oneMore = Duration.seconds(4)

    private enum Event {
        case ending(Ending)
        case obstacle(TokenStorageError)
        case saving(Saving)
        /// The program was stopped, or the machine slept.
        case wasAway
    }

    private func event(
        until deadline: Deadline?, isSaving: Bool, isTold: Bool, next: inout Deadline
    ) -> Event? {
        // A suspension between two calls is detected as well.
        defer { next = Deadline(after: SignalGuard.slice) }
        let look = { (asking: inout Asking) -> Event? in
            if asking.hasEnded { return .ending(.ended) }
            if let signal = asking.signal { return .ending(.signal(signal)) }
            if !isTold, let reason = asking.obstacle { return .obstacle(reason) }
            return isSaving ? nil : asking.saving.map { .saving($0) }
        }
        guard let deadline else { return asking.wait(look) }
        guard isSaving else { return asking.wait(atMost: deadline.remaining, look) }
        while true {
            let event = asking.wait(atMost: min(deadline.remaining, SignalGuard.slice), look)
            // Other events stay available for the next call.
            if next.lateness > SignalGuard.lateness { return .wasAway }
            next = Deadline(after: SignalGuard.slice)
            if let event { return event }
            if deadline.hasPassed { return nil }
        }
    }

    /// Ends the worker, whose time is over too, and waits for its end. The worker is not started again.
    private func endAsking() {
        asking.announce { $0.isOver = true }
        _ = asking.wait(atMost: .seconds(5)) { $0.isUnderWay ? nil : () }
    }

    // The manager's own task for unused tokens would not finish before the program ends. So the waiting
    // thread revokes tokens that were issued for a session that no longer exists.
    private var manager: TokenManager {
        TokenManager(storage: place.storage, account: name, configuration: configuration) {
            [self] in try await refresh($0)
        }
    }

    private func refresh(_ request: RefreshRequest) async throws(RefreshFailure) -> TokenRefreshResponse {
        // After this announcement, a waiting thread sees every result of the request.
        defer { asking.announce { $0.isUnderWay = false } }
        // The stored source decides, so that tokens go only to the provider that issued them.
        guard request.source == provider.profile.source else { throw note(.other(.otherSource(name))) }
        var message = provider.message(.refresh)
        message.refreshToken = request.refreshToken
        message.idToken = request.idToken
        message.scope = request.scope
        message.isRetry = request.isRetryOfUnknownOutcome
        if request.isRetryOfUnknownOutcome { asking.withLock { $0.mayHaveLost = true } }
        guard case .refreshed(let refreshed) = try await ask(message) else { throw note(.misunderstood) }
        asking.announce {
            $0.saving = Saving(left: provider.deadline?.remaining.inSeconds)
            let isRotated = refreshed.refreshToken != request.refreshToken
            $0.obtained = TokenInfo(
                accessToken: refreshed.accessToken, refreshToken: isRotated ? refreshed.refreshToken : nil)
        }
        return refreshed.response
    }

    private func ask(_ message: WorkerRequest) async throws(RefreshFailure) -> WorkerReply {
        let mayAsk = asking.withLock { asking in
            asking.isUnderWay = !asking.isOver
            asking.hasAsked = asking.hasAsked || asking.isUnderWay
            return asking.isUnderWay
        }
        guard mayAsk else { throw RefreshFailure(.notSent) }
        let thread = WorkerThread(name: "oauth")
        let outcome = await withCheckedContinuation { continuation in
            thread.run { [self] in
                let outcome = Result { () throws(OAuthProgram.WorkerError) in
                    try provider.ask(message, interruption: interruption)
                }
                continuation.resume(returning: outcome)
            }
        }
        do throws(OAuthProgram.WorkerError) { return try outcome.get() } catch { throw note(error) }
    }

    /// Records `trouble` for messages and returns the matching failure for the manager.
    private func note(_ trouble: OAuthProgram.WorkerError) -> RefreshFailure {
        let failure = trouble.refreshFailure
        asking.withLock {
            $0.trouble = trouble
            $0.mayHaveLost = $0.mayHaveLost || failure.leavesOutcomeUnknown
        }
        return failure
    }
}

extension OAuthProgram.WorkerError {
    /// The matching failure of a request with a session's token.
    var refreshFailure: RefreshFailure {
        switch self {
        case .notStarted, .notAsked: RefreshFailure(.notSent)
        case .ended, .misunderstood, .interrupted, .broken: RefreshFailure(.interrupted)
        case .timedOut: RefreshFailure(.timedOut)
        case .failed(let failure): failure.refreshFailure
        case .other: RefreshFailure(.refused("cannot_ask"))
        }
    }
}
