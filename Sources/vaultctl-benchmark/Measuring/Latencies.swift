import TokenVaultPlatform

#if OAuth
import Histogram

/// How long the calls of one kind took: an HdrHistogram of nanoseconds with three significant digits, whatever their number.
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

    /// How many there were.
    var count: Int { Int(histogram.totalCount) }

    /// The latency in microseconds that `share` of the calls, 0 to 1, did not exceed; 0 without any.
    func percentile(_ share: Double) -> Double {
        guard share < 1 else { return maximum }
        return Double(min(histogram.valueAtPercentile(share * 100), longest)) / 1_000
    }

    /// The longest, in microseconds, exactly.
    var maximum: Double { Double(longest) / 1_000 }

    /// Calls a second, one after the other.
    var perSecond: Double { total > 0 ? Double(count) * 1e9 / Double(total) : 0 }
}
#else
/// Without the trait nothing is counted: the program says so and ends before.
struct Latencies {
    mutating func record(_ duration: Duration) {}
    var count: Int { 0 }
    func percentile(_ share: Double) -> Double { 0 }
    var maximum: Double { 0 }
    var perSecond: Double { 0 }
}
#endif

extension Latencies {
    /// Times `body`, and counts it when it succeeds.
    mutating func time<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
        let start = ContinuousClock.now
        try body()
        record(start.duration(to: .now))
    }
}
