internal import Synchronization
public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

extension TokenManager {
    /// The rules by which a manager judges tokens, and its time limits.
    public struct Configuration: Sendable {
        /// The time before its expiry when an access token is refreshed; at most half of the token's
        /// lifetime. Default: 60 s.
        public var accessTokenRefreshBuffer: Duration = .seconds(60)
        /// The time before its expiry when a refresh token is no longer sent. Default: zero. A refresh token
        /// is then sent regardless of its stored expiry, since the server's record is more reliable.
        public var refreshTokenBuffer: Duration = .zero
        /// The time after which the task of a refresh request is cancelled. Default: 30 s.
        public var refreshTimeout: Duration = .seconds(30)
        /// The longest wait for another process's refresh. Default: 60 s.
        public var leaseTimeout: Duration = .seconds(60)
        /// The longest wait for the next attempt after a temporary failure, before the call throws. Default:
        /// 5 s.
        public var retryDeadline: Duration = .seconds(5)
        /// The largest number of requests of one call. Default: 3.
        public var attempts = 3
        /// The policy of a new session's item; `nil` for the storage's default.
        public var policy: AccessPolicy?
        /// The lease that separates refreshes in several processes.
        public var lease: RefreshLease = .automatic
        /// The clock that expiries are compared with.
        public var clock: @Sendable () -> Date = { Date() }
        /// Waits between attempts. Throws `CancellationError` as `Task.sleep(for:)` does.
        public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

        package var step: @Sendable (RefreshStep) async -> Void = { _ in }
        var backOff = RefreshBackOff()

        /// Creates the default configuration.
        public init() {}

        /// The largest number of requests of one call, from 1 to 100.
        var attemptLimit: Int { min(max(attempts, 1), 100) }
        /// The wait for a request after its cancellation.
        static var grace: Duration { .seconds(5) }
        /// The time during which an intent holds off other processes, in seconds. Applies where no lock shows
        /// that its owner has ended.
        var intentSeconds: Double { refreshTimeout.bounded.inSeconds + 10 }
        /// The longest wait for a refresh.
        var flightLimit: Duration {
            leaseTimeout.bounded + refreshTimeout.bounded + Self.grace + .seconds(30)
        }
    }
}

extension Duration {
    /// The duration, from zero to a day: such values can be added and slept.
    fileprivate var bounded: Duration { min(max(self, .zero), .seconds(86_400)) }
}

extension TokenManager.Configuration {
    /// Returns the result of `request`. Cancels the request after ``refreshTimeout``, or with the caller's task,
    /// and then waits a little longer; a later answer goes to `late`. A request that ends because of the time
    /// counts as timed out.
    func bounded<Value: Sendable>(
        _ request: @escaping @Sendable () async throws -> Value,
        late: @escaping @Sendable (Value) async -> Void = { _ in }
    ) async -> Result<Value, RefreshFailure> {
        let asking = Task.detached { try await request() }
        let limit = refreshTimeout.bounded
        let answer = OneAnswer<Result<Value, RefreshFailure>>()
        let isOver = Flag()
        let alarm = Task.detached {
            try await Timeout.end(after: limit)
            isOver.raise()
            asking.cancel()
            try await Task.sleep(for: Self.grace)
            answer.answer(.failure(RefreshFailure(.timedOut)))
        }
        Task.detached {
            let result = await asking.result.mapError { error in
                let failure = error as? RefreshFailure ?? RefreshFailure(.interrupted)
                let isLate = isOver.isRaised && failure.kind == .interrupted
                return isLate ? RefreshFailure(.timedOut) : failure
            }
            alarm.cancel()
            if !answer.answer(result), case .success(let value) = result { await late(value) }
        }
        return await withTaskCancellationHandler {
            await answer.value
        } onCancel: {
            asking.cancel()
        }
    }
}

/// A flag that one task raises for another.
private final class Flag: Sendable {
    private let state = Mutex(false)

    var isRaised: Bool { state.withLock { $0 } }
    func raise() { state.withLock { $0 = true } }
}
