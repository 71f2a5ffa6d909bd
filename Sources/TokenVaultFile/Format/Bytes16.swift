internal import TokenVaultCore
internal import TokenVaultCrypto

/// 16 bytes, without an array of their own: a writer compares and copies some with each commit.
struct Bytes16: Hashable, Sendable {
    private let first, second: UInt64

    static let length = 16
    static let zero = Bytes16(0, 0)

    /// Creates the bytes of two numbers, in little-endian order.
    init(_ first: UInt64, _ second: UInt64) { (self.first, self.second) = (first, second) }

    init(_ reader: inout ByteReader) throws(FormatError) {
        first = try reader.integer(UInt64.self)
        second = try reader.integer(UInt64.self)
    }

    /// Returns unpredictable bytes.
    static func random() -> Bytes16 {
        var reader = ByteReader(Random.bytes(length))
        return (try? Bytes16(&reader)) ?? .zero
    }

    func append(to writer: inout ByteWriter) {
        writer.append(first)
        writer.append(second)
    }
}
