/// In which order several things are timed.
public enum InterleavedMeasurement {
    /// The numbers below `count`, forwards and backwards, beginning with another one each time: what one leaves in the caches and
    /// at the disk the next one pays for, and that is not always the same.
    public static func order(of count: Int, in round: Int) -> [Int] {
        (0..<count).map { turn in
            (round / 2 + (round.isMultiple(of: 2) ? turn : count - 1 - turn)) % count
        }
    }
}
