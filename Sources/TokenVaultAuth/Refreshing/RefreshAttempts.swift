#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The requests of one call for a token, and the pauses between them.
struct RefreshAttempts {
    private let configuration: TokenManager.Configuration
    /// The number of requests so far.
    var begun = 0
    private var lost = 0

    init(_ configuration: TokenManager.Configuration) { self.configuration = configuration }

    /// Whether no further request is made.
    var wasLast: Bool { begun >= configuration.attemptLimit }

    /// Returns the pause until the next request, if there is one within `patience`; throws `error` otherwise.
    mutating func pause(
        after error: TokenError, atMost patience: Duration
    ) throws(TokenError) -> Duration {
        guard case .refreshFailed(let failure, let time) = error else { throw error }
        if failure.isLost { lost += 1 }
        // A refresh whose answer was lost is tried once more only. A server that timed out may still answer:
        // sending the same token again now would be a second use of it.
        guard !wasLast, lost < 2, failure.isTemporary, !failure.isLate, let time else { throw error }
        let left = Duration.seconds(max(0, time.timeIntervalSince(configuration.clock())))
        guard left <= patience else { throw error }
        return left
    }
}
