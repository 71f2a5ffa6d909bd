public import TokenVaultCrypto

/// Secret bytes that are wiped when the last copy is released.
///
/// A secret is never printed: `description`, `debugDescription`, interpolation and mirrors give `<redacted>`.
/// It is not `Codable`. Two secrets compare in constant time. An empty secret is valid.
public struct Secret: Sendable {
    @usableFromInline package let bytes: SecretBytes

    /// The largest secret that a storage accepts: 1 MiB.
    public static let maximumLength = 1 << 20

    package init(_ bytes: SecretBytes) { self.bytes = bytes }

    /// Creates a secret with a copy of `bytes`. The caller wipes its own copy.
    public init(_ bytes: some Sequence<UInt8>) { self.init(SecretBytes(copying: bytes)) }

    /// Creates a secret with the UTF-8 bytes of `text`. The memory of the string itself is not wiped.
    public init(utf8 text: String) { self.init(SecretBytes(copying: text.utf8)) }

    /// The length in bytes.
    public var count: Int { bytes.count }

    /// Whether the secret has no bytes.
    public var isEmpty: Bool { count == 0 }

    /// Calls `body` with the bytes, which are valid only during the call.
    @inlinable public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try bytes.withBytes(body)
    }

    /// Returns the bytes as an ordinary array, which is not wiped.
    public func unprotectedBytes() -> [UInt8] { bytes.array() }

    /// Returns the bytes as text, or `nil` when they are not UTF-8. The string is not wiped.
    public func unprotectedText() -> String? {
        // Straight from the wiped memory, without an array in between.
        unsafe bytes.withUnsafeBytes { unsafe String(validating: $0, as: UTF8.self) }
    }
}

extension Secret: Equatable {
    /// Whether both have the same bytes, compared in constant time for equal lengths.
    public static func == (left: Self, right: Self) -> Bool { left.bytes.isEqual(to: right.bytes) }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `<redacted>`.
    public var description: String { "<redacted>" }
    /// Always `<redacted>`.
    public var debugDescription: String { "<redacted>" }
    /// Shows no children.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
