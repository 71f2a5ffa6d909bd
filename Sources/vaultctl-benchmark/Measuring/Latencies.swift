import TokenVaultPlatform

#if OAuth
import Histogram

/// The latencies of calls of one kind, in an HdrHistogram of nanoseconds with three significant digits for
/// any number of calls.
struct Latencies {
    private var histogram = Histogram<UInt64>(numberOfSignificantValueDigits: .three)
    private var longest: UInt64 = 0
    private var total: UInt64 = 0

    /// Counts one call.
    mutating func record(_ duration: Duration) {
        let nanoseconds = duration.nanoseconds
        histogram.record(nanoseconds)
        longest = max(longest, nanoseconds)
        total += nanoseconds
    }

    /// The number of calls.
    var count: Int { Int(histogram.totalCount) }

    /// Returns the latency in microseconds that `share` of the calls, 0 to 1, did not exceed; 0 without
    /// calls.
    func percentile(_ share: Double) -> Double {
        guard share < 1 else { return maximum }
        return Double(min(histogram.valueAtPercentile(share * 100), longest)) / 1_000
    }

    /// The longest latency, in microseconds, exactly.
    var maximum: Double { Double(longest) / 1_000 }

    /// The number of calls a second, one after the other.
    var perSecond: Double { total > 0 ? Double(count) * 1e9 / Double(total) : 0 }
}
#else
/// The stand-in without the OAuth trait, which counts nothing. The program reports that and ends first.
struct Latencies {
    mutating func record(_ duration: Duration) {}
    var count: Int { 0 }
    func percentile(_ share: Double) -> Double { 0 }
    var maximum: Double { 0 }
    var perSecond: Double { 0 }
}
#endif

extension Latencies {
    /// Times `body`, and records the duration when `body` succeeds.
    mutating func time<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
        let start = ContinuousClock.now
        try body()
        record(start.duration(to: .now))
    }
}
