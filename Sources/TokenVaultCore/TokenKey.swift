/// The name of an item within a service: an account, a token's role, a profile.
///
/// Keys compare and hash by their UTF-8 bytes. `é` as one scalar and `é` as two are therefore two keys, which
/// `String`'s own equality would merge. A key is 0 to 1,024 bytes, with any characters. The initializers
/// accept any length; a call with a longer key throws ``TokenStorageError/Code/invalidKey``.
public struct TokenKey: Sendable {
    /// The key as text, exactly as given.
    public let name: String

    /// Creates a key with this name.
    public init(_ name: String) { self.name = name }

    /// The longest usable key, in bytes of UTF-8.
    public static let maximumLength = 1_024
}

extension TokenKey: Hashable {
    /// Whether both keys are the same bytes of UTF-8.
    public static func == (left: Self, right: Self) -> Bool {
        Bytes.areEqual(left.name, right.name)
    }

    /// Hashes the bytes of UTF-8.
    public func hash(into hasher: inout Hasher) {
        var name = name
        name.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // 0xFF is no byte of UTF-8: it marks the end of the key.
        hasher.combine(UInt8(0xff))
    }
}

extension TokenKey: Comparable {
    /// Whether `left` comes first in the order of UTF-8 bytes.
    public static func < (left: Self, right: Self) -> Bool {
        left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
    }
}

extension TokenKey: ExpressibleByStringInterpolation {
    /// Creates a key from a literal.
    public init(stringLiteral value: String) { self.init(value) }
}

extension TokenKey: CustomStringConvertible {
    /// The key's name.
    public var description: String { name }
}
