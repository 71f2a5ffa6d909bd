/// Durations of one operation, in microseconds, in the order in which they were taken.
public struct Measurement {
    private(set) var samples: [Double] = []

    /// No samples.
    public init() {}

    /// Times one call.
    public mutating func time(_ body: () throws -> Void) rethrows {
        let start = ContinuousClock.now
        try body()
        samples.append(start.microseconds)
    }

    /// Times one call, to the end of its waiting.
    public mutating func time(_ body: () async throws -> Void) async rethrows {
        let start = ContinuousClock.now
        try await body()
        samples.append(start.microseconds)
    }

    /// Adds what was timed elsewhere, in microseconds.
    public mutating func add(_ microseconds: Double) { samples.append(microseconds) }

    /// What was taken last; 0 before that.
    public var last: Double { samples.last ?? 0 }

    /// The value that `share` of the samples do not exceed.
    public func percentile(_ share: Double) -> Double { samples.percentile(share) }

    /// The median.
    public var p50: Double { percentile(0.5) }
}

extension ContinuousClock.Instant {
    /// How long ago this was, in microseconds.
    public var microseconds: Double {
        let parts = duration(to: .now).components
        return Double(parts.seconds) * 1e6 + Double(parts.attoseconds) / 1e12
    }
}

extension Array<Double> {
    /// The value that `share` of the elements do not exceed; 0 of none. Between two of them, what is half way.
    func percentile(_ share: Double) -> Double {
        guard !isEmpty else { return 0 }
        let (sorted, place) = (sorted(), Double(count) * share)
        let (before, after) = (Int(place.rounded(.up)) - 1, Int(place.rounded(.down)))
        let bounds = 0...count - 1
        return
            (sorted[Swift.min(Swift.max(before, bounds.lowerBound), bounds.upperBound)]
            + sorted[Swift.min(after, bounds.upperBound)]) / 2
    }
}

/// `value` with as many decimal places, for people.
public func rounded(_ value: Double, places: Int = 2) -> String {
    let scale = (0..<places).reduce(1.0) { result, _ in result * 10 }
    let number = (value * scale).rounded() / scale
    return String(number)
}
