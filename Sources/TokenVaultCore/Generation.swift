/// The version of an item: the sequence number of the commit that last changed it.
///
/// Generations of one storage grow with every commit and stay below 2^53, so that JSON keeps them exact. A
/// key never gets the same generation twice, not even after it was deleted.
public struct Generation: RawRepresentable, Hashable, Sendable, Codable {
    /// The number.
    public let rawValue: UInt64

    /// Creates a generation with this number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

extension Generation: Comparable {
    /// Whether `left` is the earlier generation.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension Generation: ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// Creates a generation from a literal.
    public init(integerLiteral value: UInt64) { self.init(rawValue: value) }

    /// The number in decimal.
    public var description: String { String(rawValue) }
}
