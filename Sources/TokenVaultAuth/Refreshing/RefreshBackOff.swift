internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The pause after failed requests. It doubles after each failure, differs between processes, and is at most
/// five minutes.
struct RefreshBackOff: Sendable {
    /// The longest pause after the first failure, in seconds.
    static let first = 1.0
    /// The longest pause at all, in seconds.
    static let longest = 300.0
    /// The longest pause that a server can ask for with `Retry-After`, in seconds.
    static let longestAsked = 3_600.0

    /// Returns a random number from 0 to 1.
    var jitter: @Sendable () -> Double = {
        Double(Random.bytes(4).reduce(0 as UInt32) { $0 << 8 | UInt32($1) }) / Double(UInt32.max)
    }

    /// Returns the pause after `failure`, the `failures`th in a row. Half of the pause is fixed, half is
    /// random.
    func pause(after failure: RefreshFailure, failures: Int, now: Date) -> RefreshPause {
        let bound = min(
            Self.longest, Self.first * Double(sign: .plus, exponent: min(failures - 1, 20), significand: 1))
        var seconds = bound * (0.5 + 0.5 * jitter())
        if let retryAfter = failure.retryAfter {
            // The server's pause plus a random part, since other clients got the same `Retry-After`.
            let asked = min(Self.longestAsked, max(0, retryAfter.timeIntervalSince(now)))
            seconds = max(asked + min(Self.first, asked) * 0.5 * jitter(), seconds)
        }
        let begun = now.timeIntervalSince1970
        return RefreshPause(failures: failures, until: begun + seconds, begun: begun)
    }
}
