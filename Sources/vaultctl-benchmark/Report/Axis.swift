internal import ProgramSupport
import TokenVaultPlatform

/// An axis of a chart: from `low` to `high`, with marks in between.
struct Axis {
    struct Tick {
        let value: Double
        let label: String
    }

    let low: Double
    let high: Double
    let ticks: [Tick]

    /// Returns the position of `value` between `low` and `high`, 0 to 1.
    func place(_ value: Double) -> Double { min(1, max(0, (value - low) / (high - low))) }

    /// Returns an axis of latencies: the logarithm of microseconds, with whole powers of ten around all of
    /// `values`.
    static func latency(_ values: [Double]) -> Axis {
        let logarithms = values.map { Self.logarithm($0) }
        let low = (logarithms.min() ?? 0).rounded(.down)
        let high = max(low + 1, (logarithms.max() ?? 1).rounded(.up))
        let ticks = (Int(low)...Int(high)).map {
            Tick(value: Double($0), label: scaleLabel(exponent: $0))
        }
        return Axis(low: low, high: high, ticks: ticks)
    }

    /// Returns an axis of item counts: their logarithm, from the least to the most of `values`. Marks as many
    /// of `values` as fit.
    static func items(_ values: [Int]) -> Axis {
        let logarithms = Set(values).sorted().map { (value: $0, at: logarithm(Double($0))) }
        let low = logarithms.first?.at ?? 0
        let high = max(logarithms.last?.at ?? 1, low + 0.001)
        var ticks: [Tick] = []
        for (value, at) in logarithms {
            if let last = ticks.last, (at - last.value) / (high - low) < 0.15 { continue }
            ticks.append(Tick(value: at, label: grouped(value)))
        }
        return Axis(low: low, high: high, ticks: ticks)
    }

    /// Returns an axis of shares of the calls, by the number of nines in the share. So 90 %, 99 % and 99.9 %
    /// are equally far apart. The axis ends where `count` calls cannot determine more.
    static func percentiles(count: Int) -> Axis {
        let high = max(2, logarithm(Double(max(count, 1))))
        let marks: [(Double, String)] = [
            (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %"),
            (0.99999, "99.999 %"),
        ]
        let ticks = marks.map { Tick(value: nines($0.0), label: $0.1) }.filter { $0.value <= high }
        return Axis(low: 0, high: high, ticks: ticks)
    }

    /// Returns the decimal logarithm of a value above zero.
    static func logarithm(_ value: Double) -> Double { Logarithm.decimal(max(value, 0.001)) }

    /// Returns the number of nines that `share`, below 1, begins with: 2 for 0.99.
    static func nines(_ share: Double) -> Double { -Logarithm.decimal(1 - share) }
}
