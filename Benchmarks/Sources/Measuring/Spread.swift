/// A figure, and between which ones it was while it was taken.
public struct Spread {
    /// The figure.
    public let value: Double
    /// The smallest and the largest one of the parts of a run.
    public let low, high: Double

    /// A figure that was taken once.
    public init(_ value: Double) { (self.value, low, high) = (value, value, value) }

    /// The median of figures that were taken one after the other.
    public init(of values: [Double]) {
        value = values.percentile(0.5)
        (low, high) = (values.min() ?? value, values.max() ?? value)
    }

    /// How many times as long `ours` takes as `theirs`, which was timed in turn: the ratio of the medians. The spread is that
    /// of the ratios in ten parts of the run, so that it tells what a neighbour, or the disk, did to both.
    public init(_ ours: Measurement, per theirs: Measurement) {
        value = ours.p50 / theirs.p50
        let parts = min(10, ours.samples.count, theirs.samples.count)
        let ratios = (0..<parts).map { part in
            ours.samples.part(part, of: parts).percentile(0.5)
                / theirs.samples.part(part, of: parts).percentile(0.5)
        }
        (low, high) = (ratios.min() ?? value, ratios.max() ?? value)
    }

    /// The figure times `factor`.
    public static func * (spread: Spread, factor: Double) -> Spread {
        Spread(value: spread.value * factor, low: spread.low * factor, high: spread.high * factor)
    }

    /// The other way around: theirs for each of ours.
    public var inverse: Spread { Spread(value: 1 / value, low: 1 / high, high: 1 / low) }

    private init(value: Double, low: Double, high: Double) {
        (self.value, self.low, self.high) = (value, low, high)
    }
}

extension Measurement {
    /// The median, and those of ten parts of the run.
    public var median: Spread {
        let parts = min(10, samples.count)
        return Spread(
            p50, (0..<parts).map { samples.part($0, of: parts).percentile(0.5) })
    }
}

extension Spread {
    fileprivate init(_ value: Double, _ parts: [Double]) {
        self.init(value: value, low: parts.min() ?? value, high: parts.max() ?? value)
    }
}

extension Array {
    fileprivate func part(_ part: Int, of parts: Int) -> Self {
        Array(self[count * part / parts..<count * (part + 1) / parts])
    }
}
