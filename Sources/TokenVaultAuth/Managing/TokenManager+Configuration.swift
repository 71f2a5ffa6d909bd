internal import Synchronization
public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

extension TokenManager {
    /// How a manager judges tokens, and for how long it waits.
    public struct Configuration: Sendable {
        /// How long before its end an access token is renewed; at most half of the token's lifetime. Default: a minute.
        public var accessTokenRefreshBuffer: Duration = .seconds(60)
        /// How long before its end a refresh token is not sent any more. Default: none, and it is sent whatever is known of its
        /// end, since the server knows better.
        public var refreshTokenBuffer: Duration = .zero
        /// After what time the task of a refresh request is cancelled. Default: 30 s.
        public var refreshTimeout: Duration = .seconds(30)
        /// How long another process's refresh is waited for. Default: 60 s.
        public var leaseTimeout: Duration = .seconds(60)
        /// How long a call waits for the next attempt after one that failed for now, before it throws. Default: 5 s.
        public var retryDeadline: Duration = .seconds(5)
        /// How many requests a call sends at most. Default: 3.
        public var attempts = 3
        /// The policy of a new session's item; `nil` for the storage's default.
        public var policy: AccessPolicy?
        /// What keeps refreshes in several processes apart.
        public var lease: RefreshLease = .automatic
        /// The clock that expiries are compared with.
        public var clock: @Sendable () -> Date = { Date() }
        /// Waits between attempts. Throws `CancellationError` as `Task.sleep(for:)` does.
        public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

        package var step: @Sendable (RefreshStep) async -> Void = { _ in }
        var backOff = RefreshBackOff()

        /// The defaults.
        public init() {}

        /// How many requests a call sends at most, in bounds.
        var attemptLimit: Int { min(max(attempts, 1), 100) }
        /// For how long a request is waited for after it was cancelled.
        static var grace: Duration { .seconds(5) }
        /// For how long an intent keeps others away where no lock tells that its holder is gone, in seconds.
        var intentSeconds: Double { refreshTimeout.bounded.inSeconds + 10 }
        /// For how long a refresh is waited for at most.
        var flightLimit: Duration {
            leaseTimeout.bounded + refreshTimeout.bounded + Self.grace + .seconds(30)
        }
    }
}

extension Duration {
    /// The duration, and no more than a day: what can be added up and slept.
    fileprivate var bounded: Duration { min(max(self, .zero), .seconds(86_400)) }
}

extension TokenManager.Configuration {
    /// What `request` gives. It is cancelled after ``refreshTimeout`` and waited for a little longer; an answer that comes
    /// even later goes to `late`. One that breaks off because it was cancelled has timed out.
    func bounded<Value: Sendable>(
        _ request: @escaping @Sendable () async throws -> Value,
        late: @escaping @Sendable (Value) async -> Void = { _ in }
    ) async -> Result<Value, RefreshFailure> {
        let asking = Task.detached { try await request() }
        let limit = refreshTimeout.bounded
        return await withCheckedContinuation { continuation in
            let waiting = OneAnswer(continuation)
            let alarm = Task.detached {
                try await Timeout.end(after: limit)
                asking.cancel()
                try await Task.sleep(for: Self.grace)
                _ = waiting.answer(.failure(RefreshFailure(.timedOut)))
            }
            Task.detached {
                let result = await asking.result.mapError { error in
                    let failure = error as? RefreshFailure ?? RefreshFailure(.interrupted)
                    let isLate = asking.isCancelled && failure.kind == .interrupted
                    return isLate ? RefreshFailure(.timedOut) : failure
                }
                alarm.cancel()
                if !waiting.answer(result), case .success(let value) = result { await late(value) }
            }
        }
    }
}

/// A continuation that is given one answer, the first.
private final class OneAnswer<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value, Never>?>

    init(_ continuation: CheckedContinuation<Value, Never>) { self.continuation = Mutex(continuation) }

    /// Gives an answer; false when there was one before.
    func answer(_ value: Value) -> Bool {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: value)
        return waiting != nil
    }
}
