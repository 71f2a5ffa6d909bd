package import TokenVaultCrypto

/// Secret bytes that are wiped when the last copy goes.
///
/// A secret never shows itself: `description`, `debugDescription`, interpolation and mirrors give
/// `<redacted>`; it is not `Codable`. Two secrets compare in constant time. An empty secret is a secret.
public struct Secret: Sendable {
    package let bytes: SecretBytes

    /// The largest secret a storage takes: 1 MiB.
    public static let maximumLength = 1 << 20

    package init(_ bytes: SecretBytes) { self.bytes = bytes }

    /// A secret with a copy of `bytes`. The caller's own copy is the caller's to wipe.
    public init(_ bytes: some Sequence<UInt8>) { self.init(SecretBytes(copying: bytes)) }

    /// A secret with the UTF-8 bytes of `text`. The string itself stays in memory that nobody wipes.
    public init(utf8 text: String) { self.init(SecretBytes(copying: text.utf8)) }

    /// The length in bytes.
    public var count: Int { bytes.count }

    /// Whether there are no bytes.
    public var isEmpty: Bool { count == 0 }

    /// The bytes, for the length of the call.
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try bytes.withBytes(body)
    }

    /// The bytes as an ordinary array, which nobody wipes.
    public func unprotectedBytes() -> [UInt8] { bytes.array() }

    /// The bytes as text, in a string that nobody wipes; `nil` when they are not UTF-8.
    public func unprotectedText() -> String? {
        // Straight from the wiped memory: no array is left behind.
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
