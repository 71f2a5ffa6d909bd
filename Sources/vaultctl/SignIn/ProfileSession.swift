import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// A profile's session, kept by a `TokenManager` whose requests go through `vaultctl-oauth`.
final class ProfileSession: Sendable {
    private let place: ProfileStore
    private let name: String
    private let provider: ProfileProvider
    private let configuration: TokenManager.Configuration

    private struct Asking {
        /// Whether `vaultctl-oauth` runs.
        var isUnderWay = false
        /// Whether nothing is to be asked any more.
        var isOver = false
        /// What the last request came to when it gave no answer.
        var trouble: OAuthProgram.WorkerError?
        /// What the last request brought. A refresh token that is the one that was sent is not among it.
        var obtained: TokenInfo?
        /// Until when that is tried to be stored.
        var saving: Saving?
        /// Why that could not be stored, while that is tried still.
        var obstacle: TokenStorageError?
        /// Whether a request was begun.
        var hasAsked = false
        /// Whether the provider may have given tokens that never came here: the answer to a request was lost, now or before.
        var mayHaveLost = false
        /// How many attempts were begun, and which one was the last that ended.
        var (begun, ended) = (0, 0)
        /// Whether it is not to be tried to be stored any more.
        var isLeaving = false
        /// The signal that is to end the program.
        var signal: CInt?
        /// Whether nothing is under way any more.
        var hasEnded = false
    }

    private struct Saving {
        /// Until when it is tried again.
        let end: Deadline
        /// For how long an attempt that does not end is waited for then.
        let patience: Duration

        /// In what is left of the command's time, in seconds. A moment there is always: the provider may take the tokens before no
        /// more.
        init(left: Double?) {
            end = Deadline(after: .seconds(max(1, min(60, (left ?? 60 / 0.7) * 0.7))))
            patience = .seconds(min(1, max(0.5, (left ?? 60) * 0.1)))
        }
    }

    /// How the waiting for a session's end ends.
    private enum Ending {
        case ended
        case timeIsOver
        case signal(CInt)
    }
    private let asking = Monitor(Asking())
    private let interruption: SignalGuard

    /// The session of the profile `name`. Nothing is read yet.
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
        // The worker gives up first, so that what it has to say still comes.
        configuration.refreshTimeout = .seconds(ProfileProvider.usualLimit + 8)
        if let left = provider.deadline?.remaining {
            configuration.leaseTimeout = min(configuration.leaseTimeout, left)
        }
        self.configuration = configuration
    }

    /// What `body` gives. Throws why it does not, in this program's words. `vaultctl-oauth` has ended by then.
    ///
    /// What the provider gave and could not be stored, since the vault was locked meanwhile for one, is tried to be stored
    /// for a minute, or most of what is left of the time, or until a signal ends the program. Then it is lost, and not revoked:
    /// what is stored says that a renewal was begun, and a provider that allows another try gives the same session again.
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
            // Nor is anything asked any more, and what is under way is ended, which the program does not outlive.
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
            // The provider may have taken the token for the renewal before, and be right to refuse it now.
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

    /// Says what is lost with the program, unless the attempt to store it that is under way succeeds.
    private func tellOfLoss<Value>(
        _ console: Console, unlessStoredBy task: Tasks<Result<Value, TokenError>>
    ) {
        let obtained = asking.announce { asking in
            asking.isLeaving = true
            return asking.obtained
        }
        guard obtained != nil else {
            // The request may have been answered when nobody listened any more.
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

    /// What `body` gives, once what came of it is stored: the manager has the tokens still, and asks for no others.
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
                // It cannot be read either, or others kept this one waiting.
                case .storage where unsaved != nil, .timedOut where unsaved != nil: break
                default: return .failure(error)
                }
            }
            // Whoever waits says when it is over, and knows whether nobody was there while the time passed.
            if !isWanted(unsaved) { break }
            try? await Task.sleep(for: .milliseconds(250))
            if !isWanted(unsaved) { break }
        }
        return .failure(unsaved.map { .notSaved($0) } ?? .cancelled)
    }

    /// Whether what could not be stored for the reason `unsaved` is to be tried to be stored again.
    private func isWanted(_ unsaved: TokenStorageError?) -> Bool {
        asking.withLock { unsaved != nil && $0.saving != nil && !$0.isLeaving }
    }

    /// Waits for the end as long as there is time, for a signal, and for what keeps new tokens from being stored, which a
    /// person may be able to end.
    private func waitForEnd(_ console: Console) -> Ending {
        var end = provider.deadline
        var (isSaving, isTold, hasGivenUp) = (false, false, false)
        // For how long is waited when no more attempt is to be begun.
        var patience: Duration?
        // The attempt that is waited for by one who was stopped, and how often it may take longer.
        var (due, delays) = (0, 5)
        // When the next look is due: much later, nobody was there.
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
                // That may have been all of the time: at least one more attempt is made.
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
                // What became of the request is stored still, so that nobody else has to wait for it.
                end = Deadline(after: .seconds(1))
            }
        }
    }

    /// How long it is tried at least to store what the provider gave, by one who was stopped meanwhile; longer, while no attempt
    /// that was begun since has ended.
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
        // Whatever passes between two calls is noticed as well.
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
            // What else there is to know is there still.
            if next.lateness > SignalGuard.lateness { return .wasAway }
            next = Deadline(after: SignalGuard.slice)
            if let event { return event }
            if deadline.hasPassed { return nil }
        }
    }

    /// Waits for the end of `vaultctl-oauth`, whose time is over as well. It is not started again.
    private func endAsking() {
        asking.announce { $0.isOver = true }
        _ = asking.wait(atMost: .seconds(5)) { $0.isUnderWay ? nil : () }
    }

    // What is obtained for a session that is none any more is revoked by the thread that waits: the program would end before a
    // task of the manager's had.
    private var manager: TokenManager {
        TokenManager(storage: place.storage, account: name, configuration: configuration) {
            [self] in try await refresh($0)
        }
    }

    private func refresh(_ request: RefreshRequest) async throws(RefreshFailure) -> TokenRefreshResponse {
        // Whoever waits for that knows all that came of it.
        defer { asking.announce { $0.isUnderWay = false } }
        // By what is stored beside the token itself: to no other provider than the one that gave it.
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

    /// What `trouble` means for the manager; it is kept for what is told.
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
    /// What it means for a request with a session's token in it.
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
