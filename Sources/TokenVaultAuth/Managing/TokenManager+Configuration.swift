public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

extension TokenManager {
    /// How a manager judges tokens, and for how long it waits.
    public struct Configuration: Sendable {
        /// How long before its end an access token is renewed; at most half of the token's lifetime. Default: a minute.
        public var accessTokenRefreshBuffer: Duration = .seconds(60)
        /// How long before its end a refresh token is not sent any more. Default: none.
        public var refreshTokenBuffer: Duration = .zero
        /// After what time the task of a refresh request is cancelled. Default: 30 s.
        public var refreshTimeout: Duration = .seconds(30)
        /// How long another process's refresh is waited for. Default: 60 s.
        public var leaseTimeout: Duration = .seconds(60)
        /// How long a call waits for the next attempt after one that failed for now, before it throws. Default: 5 s.
        public var patience: Duration = .seconds(5)
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

        /// For how long an intent keeps others away where no lock tells that its holder is gone, in seconds.
        var intentSeconds: Double { refreshTimeout.inSeconds + 10 }
        /// The longest such time that another configuration may have, in seconds.
        var longestIntentSeconds: Double { max(intentSeconds, 3_600) }
        /// For how long a caller waits at most.
        var callLimit: Duration {
            leaseTimeout + (refreshTimeout + patience) * max(attempts, 1) + .seconds(30)
        }
    }
}

extension TokenManager.Configuration {
    /// What `request` gives. It is cancelled after ``refreshTimeout`` and then waited for: an answer that comes late is an
    /// answer.
    func bounded<Value: Sendable>(
        _ request: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, RefreshFailure> {
        let asking = Task.detached { try await request() }
        let alarm = Task.detached { [refreshTimeout] in
            try await Task.sleep(for: refreshTimeout)
            asking.cancel()
        }
        defer { alarm.cancel() }
        return await asking.result.mapError { $0 as? RefreshFailure ?? RefreshFailure(.interrupted) }
    }
}
