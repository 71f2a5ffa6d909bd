import OAuthWire
import Synchronization
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// A profile's session, kept by a `TokenManager` whose requests go through `vaultctl-oauth`.
final class ProfileSession: Sendable {
    private let place: LoginPlace
    private let name: String
    private let stored: StoredProfile?
    private let program: Result<OAuthProgram, CommandFailure>
    private let deadline: Deadline?
    private let configuration: TokenManager.Configuration
    /// What the last request came to when it gave no answer.
    private let trouble = Mutex<OAuthProgram.Trouble?>(nil)

    /// How long a request may take when nobody said, in seconds.
    private static let usualLimit = 25.0

    /// The session of the profile `name`. Nothing is read yet.
    init(
        _ place: LoginPlace, _ name: String, _ stored: StoredProfile?,
        program: Result<OAuthProgram, CommandFailure>, deadline: Deadline?,
        configuration: TokenManager.Configuration = TokenManager.Configuration()
    ) {
        self.place = place
        self.name = name
        self.stored = stored
        self.program = program
        self.deadline = deadline
        var configuration = configuration
        configuration.lease = place.lease
        // The worker gives up first, so that what it has to say still comes.
        configuration.refreshTimeout = .seconds(Self.usualLimit + 8)
        if let left = deadline?.remaining {
            configuration.leaseTimeout = min(configuration.leaseTimeout, left)
        }
        self.configuration = configuration
    }

    /// What `body` gives. Throws why it does not, in this program's words.
    func wait<Value: Sendable>(
        for body: @escaping @Sendable (TokenManager) async throws(TokenError) -> Value
    ) throws(CommandFailure) -> Value {
        let manager = manager
        let outcome = Tasks.wait(until: deadline) { () async -> Result<Value, TokenError> in
            do throws(TokenError) { return .success(try await body(manager)) } catch {
                return .failure(error)
            }
        }
        switch outcome {
        case .success(let value): return value
        case .failure(let error): throw CommandFailure(error, trouble.withLock { $0 })
        case nil: throw CommandFailure(.timedOut, trouble.withLock { $0 })
        }
    }

    private var manager: TokenManager {
        TokenManager(
            storage: place.storage, account: name, configuration: configuration,
            revokeRequestProvider: { [self] in try await revoke($0) },
            refreshRequestProvider: { [self] in try await refresh($0) })
    }

    private func refresh(_ request: RefreshRequest) async throws(RefreshFailure) -> TokenRefreshResponse {
        var message = try message(.refresh)
        message.refreshToken = request.refreshToken
        message.idToken = request.idToken
        message.scope = request.scope
        message.isRetry = request.isRetryOfUnknownOutcome
        guard case .refreshed(let refreshed) = try await ask(message) else { throw note(.misunderstood) }
        return refreshed.response
    }

    private func revoke(_ tokens: TokenInfo) async throws(RefreshFailure) {
        var message = try message(.revoke)
        message.accessToken = tokens.accessToken
        message.refreshToken = tokens.refreshToken
        guard case .revoked = try await ask(message) else { throw note(.misunderstood) }
    }

    /// A message to the provider of the profile that this began with. A token is never sent to another one, should somebody
    /// have signed in elsewhere under the same name meanwhile.
    private func message(_ operation: WorkerRequest.Operation) throws(RefreshFailure) -> WorkerRequest {
        do throws(CommandFailure) {
            guard let stored else { throw .noProfile }
            guard try place.profile(name)?.generation == stored.generation else {
                throw CommandFailure(.conflict, "the profile was changed meanwhile", "try again")
            }
            let left = (deadline?.remaining ?? .seconds(Self.usualLimit)).inSeconds
            return stored.profile.request(operation, seconds: min(Self.usualLimit, left))
        } catch {
            throw note(.other(error))
        }
    }

    private func ask(_ message: WorkerRequest) async throws(RefreshFailure) -> WorkerReply {
        let program: OAuthProgram
        do throws(CommandFailure) { program = try self.program.get() } catch { throw note(.other(error)) }
        // Later than the worker gives up, but not for ever.
        let limit = Duration.seconds(message.seconds + 4)
        let deadline = Deadline(after: min(limit, self.deadline?.remaining ?? limit))
        let thread = WorkerThread(name: "oauth")
        let outcome = await withCheckedContinuation { continuation in
            thread.run {
                continuation.resume(
                    returning: Result { () throws(OAuthProgram.Trouble) in
                        try program.ask(message, until: deadline)
                    })
            }
        }
        do throws(OAuthProgram.Trouble) { return try outcome.get() } catch { throw note(error) }
    }

    /// What `trouble` means for the manager; it is kept for what is told.
    private func note(_ trouble: OAuthProgram.Trouble) -> RefreshFailure {
        self.trouble.withLock { $0 = trouble }
        return switch trouble {
        case .notStarted: RefreshFailure(.notSent)
        case .ended, .misunderstood, .timedOut: RefreshFailure(.interrupted)
        case .failed(let failure): failure.refreshFailure
        case .other: RefreshFailure(.refused("cannot_ask"))
        }
    }
}

extension Duration {
    /// The duration in seconds.
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1_000_000_000_000_000_000
    }
}
