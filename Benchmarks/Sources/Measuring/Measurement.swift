/// Durations of one operation, in microseconds.
public struct Measurement {
    private var samples: [Double] = []

    /// No samples.
    public init() {}

    /// Times one call.
    public mutating func time(_ body: () throws -> Void) rethrows {
        let clock = ContinuousClock()
        let duration = try clock.measure(body)
        let parts = duration.components
        samples.append(Double(parts.seconds) * 1e6 + Double(parts.attoseconds) / 1e12)
    }

    /// Times one call, to the end of its waiting.
    public mutating func time(_ body: () async throws -> Void) async rethrows {
        let clock = ContinuousClock()
        let start = clock.now
        try await body()
        let parts = start.duration(to: clock.now).components
        samples.append(Double(parts.seconds) * 1e6 + Double(parts.attoseconds) / 1e12)
    }

    /// Adds what was timed elsewhere, in microseconds.
    public mutating func add(_ microseconds: Double) { samples.append(microseconds) }

    /// The value that `share` of the samples do not exceed.
    public func percentile(_ share: Double) -> Double {
        let sorted = samples.sorted()
        guard !sorted.isEmpty else { return 0 }
        return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }

    /// The median.
    public var p50: Double { percentile(0.5) }
}

/// `value` with as many decimal places, for people.
public func rounded(_ value: Double, places: Int = 2) -> String {
    let scale = (0..<places).reduce(1.0) { result, _ in result * 10 }
    let number = (value * scale).rounded() / scale
    return String(number)
}
