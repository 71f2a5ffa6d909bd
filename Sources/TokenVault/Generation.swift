/// The version of an item: the sequence number of the commit that last changed it.
///
/// Generations of one storage grow with every commit, stay below 2^53 (so that JSON keeps them exact)
/// and are never used twice for a key, not even after the key was deleted.
public struct Generation: RawRepresentable, Hashable, Sendable, Codable {
    /// The number.
    public let rawValue: UInt64

    /// A generation with this number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

extension Generation: Comparable {
    /// Whether `left` came before `right`.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension Generation: ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// A generation written as a literal.
    public init(integerLiteral value: UInt64) { self.init(rawValue: value) }

    /// The number in decimal.
    public var description: String { String(rawValue) }
}
