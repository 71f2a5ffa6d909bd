import OAuthWire
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// A profile's session, kept by a `TokenManager` whose requests go through `vaultctl-oauth`.
final class ProfileSession: Sendable {
    private let place: LoginPlace
    private let name: String
    private let provider: ProfileProvider
    private let configuration: TokenManager.Configuration

    private struct Asking {
        /// Whether `vaultctl-oauth` runs.
        var isUnderWay = false
        /// Whether nothing is to be asked any more.
        var isOver = false
        /// What the last request came to when it gave no answer.
        var trouble: OAuthProgram.Trouble?
        /// What the last request brought. A refresh token that is the one that was sent is not among it.
        var obtained: TokenInfo?
        /// Why that could not be stored, while that is tried still.
        var obstacle: TokenStorageError?
        /// Whether nothing is under way any more.
        var hasEnded = false
    }
    private let asking = Monitor(Asking())

    /// The session of the profile `name`. Nothing is read yet.
    init(
        _ place: LoginPlace, _ name: String, _ provider: ProfileProvider,
        _ configuration: TokenManager.Configuration
    ) {
        self.place = place
        self.name = name
        self.provider = provider
        var configuration = configuration
        configuration.lease = place.lease
        // The worker gives up first, so that what it has to say still comes.
        configuration.refreshTimeout = .seconds(ProfileProvider.usualLimit + 8)
        if let left = provider.deadline?.remaining {
            configuration.leaseTimeout = min(configuration.leaseTimeout, left)
        }
        self.configuration = configuration
    }

    /// For how long what the provider gave is tried to be stored when nobody said, in seconds.
    private static let savingLimit = 60.0

    /// What `body` gives. Throws why it does not, in this program's words. `vaultctl-oauth` has ended by then.
    ///
    /// What the provider gave and could not be stored, since the vault was locked meanwhile for one, is tried to be stored
    /// for a minute, or most of what is left of the time, and is revoked then.
    func wait<Value: Sendable>(
        _ console: Console, for body: @escaping @Sendable (TokenManager) async throws(TokenError) -> Value
    ) throws(CommandFailure) -> Value {
        let task = Tasks { [self] () async -> Result<Value, TokenError> in
            let outcome = await stored(body, by: manager)
            asking.announce { $0.hasEnded = true }
            return outcome
        }
        tellObstacle(console)
        var outcome = task.wait(until: provider.deadline)
        if outcome == nil {
            endAsking()
            // What became of the request is stored still, so that nobody else has to wait for it.
            outcome = task.wait(until: Deadline(after: .seconds(1)))
        }
        let asked = asking.withLock { $0 }
        switch outcome {
        case .success(let value): return value
        case .failure(let error):
            if let lost = asked.obtained {
                switch error {
                case .sessionChanged:
                    provider.drop(lost, "what the provider gave for a session that is none any more", console)
                case .notSaved: provider.drop(lost, "what the provider gave and could not be stored", console)
                default: break
                }
            }
            throw CommandFailure(error, asked.trouble, name)
        case nil:
            if asked.obstacle != nil, let lost = asked.obtained {
                provider.drop(lost, "what the provider gave and could not be stored", console)
            }
            throw CommandFailure(.timedOut, asked.trouble, name)
        }
    }

    /// What `body` gives, once what came of it is stored: the manager has the tokens still, and asks for no others.
    private func stored<Value: Sendable>(
        _ body: @Sendable (TokenManager) async throws(TokenError) -> Value, by manager: TokenManager
    ) async -> Result<Value, TokenError> {
        var unsaved: (reason: TokenStorageError, end: Deadline)?
        while true {
            do throws(TokenError) { return .success(try await body(manager)) } catch {
                switch error {
                case .notSaved(let reason):
                    unsaved = (reason, unsaved?.end ?? savingEnd)
                    asking.announce { $0.obstacle = reason }
                // It cannot be read either.
                case .storage where unsaved != nil: break
                default: return .failure(error)
                }
            }
            guard let unsaved, !unsaved.end.hasPassed else {
                return .failure(unsaved.map { .notSaved($0.reason) } ?? .cancelled)
            }
            try? await Task.sleep(for: min(.milliseconds(250), unsaved.end.remaining))
        }
    }

    /// What is left of the time then is for telling the provider.
    private var savingEnd: Deadline {
        let left = provider.deadline?.remaining.inSeconds ?? Self.savingLimit
        return Deadline(after: .seconds(min(Self.savingLimit, left * 0.7)))
    }

    /// Waits for the end, or for what keeps new tokens from being stored, which a person may be able to end.
    private func tellObstacle(_ console: Console) {
        let look = { (asking: inout Asking) -> TokenStorageError?? in
            asking.obstacle.map { .some($0) } ?? (asking.hasEnded ? .some(nil) : nil)
        }
        let found =
            if let deadline = provider.deadline {
                asking.wait(atMost: deadline.remaining, look)
            } else {
                asking.wait(look)
            }
        guard case .some(.some(let reason)) = found else { return }
        let failure = CommandFailure(reason)
        console.note(
            "the provider gave new tokens that cannot be stored yet; it is tried for up to a minute: "
                + "\(failure.happened): \(failure.advice)")
    }

    /// Waits for the end of `vaultctl-oauth`, whose time is over as well. It is not started again.
    private func endAsking() {
        asking.announce { $0.isOver = true }
        _ = asking.wait(atMost: .seconds(5)) { $0.isUnderWay ? nil : () }
    }

    // What is obtained and not stored is revoked by the thread that waits: the program would end before a task of the
    // manager's had.
    private var manager: TokenManager {
        TokenManager(storage: place.storage, account: name, configuration: configuration) {
            [self] in try await refresh($0)
        }
    }

    private func refresh(_ request: RefreshRequest) async throws(RefreshFailure) -> TokenRefreshResponse {
        // By what is stored beside the token itself: to no other provider than the one that gave it.
        guard request.source == provider.profile.source else { throw note(.other(.otherSource(name))) }
        var message = provider.message(.refresh)
        message.refreshToken = request.refreshToken
        message.idToken = request.idToken
        message.scope = request.scope
        message.isRetry = request.isRetryOfUnknownOutcome
        guard case .refreshed(let refreshed) = try await ask(message) else { throw note(.misunderstood) }
        asking.withLock {
            let isRotated = refreshed.refreshToken != request.refreshToken
            $0.obtained = TokenInfo(
                accessToken: refreshed.accessToken, refreshToken: isRotated ? refreshed.refreshToken : nil)
        }
        return refreshed.response
    }

    private func ask(_ message: WorkerRequest) async throws(RefreshFailure) -> WorkerReply {
        let mayAsk = asking.withLock { asking in
            asking.isUnderWay = !asking.isOver
            return asking.isUnderWay
        }
        guard mayAsk else { throw RefreshFailure(.notSent) }
        let thread = WorkerThread(name: "oauth")
        let outcome = await withCheckedContinuation { continuation in
            thread.run { [self] in
                let outcome = Result { () throws(OAuthProgram.Trouble) in try provider.ask(message) }
                asking.announce { $0.isUnderWay = false }
                continuation.resume(returning: outcome)
            }
        }
        do throws(OAuthProgram.Trouble) { return try outcome.get() } catch { throw note(error) }
    }

    /// What `trouble` means for the manager; it is kept for what is told.
    private func note(_ trouble: OAuthProgram.Trouble) -> RefreshFailure {
        asking.withLock { $0.trouble = trouble }
        return trouble.refreshFailure
    }
}

extension OAuthProgram.Trouble {
    /// What it means for a request with a session's token in it.
    var refreshFailure: RefreshFailure {
        switch self {
        case .notStarted: RefreshFailure(.notSent)
        case .ended, .misunderstood: RefreshFailure(.interrupted)
        case .timedOut: RefreshFailure(.timedOut)
        case .failed(let failure): failure.refreshFailure
        case .other: RefreshFailure(.refused("cannot_ask"))
        }
    }
}
