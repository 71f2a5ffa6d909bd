package import TokenVault
internal import TokenVaultCrypto
package import TokenVaultPlatform

#if canImport(FoundationEssentials)
package import FoundationEssentials
#endif

/// Reads the encoding of ``WireWriter``. Every read is checked against the end of the frame. Each value has
/// only one encoding: reading and writing it gives the same bytes.
package struct WireReader {
    private let buffer: WipedBuffer
    private var position: Int
    private let end: Int

    /// Creates a reader of a range of `buffer`, limited to the bytes that exist.
    package init(_ buffer: WipedBuffer, in range: Range<Int>) {
        self.buffer = buffer
        let range = range.clamped(to: 0..<buffer.count)
        position = range.lowerBound
        end = range.upperBound
    }

    package var remaining: Int { end - position }

    /// Throws unless everything was read.
    package func finish() throws(WireError) {
        guard remaining == 0 else { throw .tooLong }
    }

    /// Skips `bytes` if they come next. Returns whether they did.
    package mutating func skip(_ bytes: [UInt8]) -> Bool {
        guard bytes.count <= remaining, buffer.holds(bytes, in: position..<position + bytes.count) else {
            return false
        }
        position += bytes.count
        return true
    }

    /// Returns the value of `read` and the bytes that it read.
    package mutating func withBytes<Value>(
        _ read: (inout WireReader) throws(WireError) -> Value
    ) throws(WireError) -> (value: Value, bytes: [UInt8]) {
        let start = position
        let value = try read(&self)
        return (value, buffer.array(in: start..<position) ?? [])
    }

    /// Returns the range of the next `count` bytes and moves past them.
    private mutating func take(_ count: Int) throws(WireError) -> Range<Int> {
        guard count <= remaining else { throw .tooShort }
        defer { position += count }
        return position..<position + count
    }

    package mutating func integer<Value: FixedWidthInteger & UnsignedInteger>(_ type: Value.Type)
        throws(WireError) -> Value
    {
        let range = try take(Value.bitWidth / 8)
        guard let value = buffer.integer(at: range.lowerBound, as: type) else { throw .tooShort }
        return value
    }

    /// Reads a length of at most `limit`.
    private mutating func length(limit: Int) throws(WireError) -> Int {
        let length = Int(try integer(UInt32.self))
        guard length <= limit else { throw .outOfBounds }
        return length
    }

    package mutating func flag() throws(WireError) -> Bool {
        switch try integer(UInt8.self) {
        case 0: false
        case 1: true
        default: throw .outOfBounds
        }
    }

    /// Reads a text of at most `limit` bytes.
    package mutating func text(limit: Int) throws(WireError) -> String {
        let range = try take(try length(limit: limit))
        guard let text = buffer.text(in: range) else { throw .outOfBounds }
        return text
    }

    /// Reads at most `limit` bytes.
    package mutating func bytes(limit: Int) throws(WireError) -> [UInt8] {
        let range = try take(try length(limit: limit))
        return buffer.array(in: range) ?? []
    }

    package mutating func fixed(_ count: Int) throws(WireError) -> [UInt8] {
        buffer.array(in: try take(count)) ?? []
    }

    /// Reads a path, encoded as its bytes.
    package mutating func path() throws(WireError) -> FilePath {
        let bytes = try bytes(limit: AgentWire.maximumPath)
        guard !bytes.contains(0) else { throw .outOfBounds }
        let path = FilePath(bytes: bytes)
        // Otherwise the path would be written differently.
        guard path.bytes == bytes else { throw .outOfBounds }
        return path
    }

    package mutating func secret() throws(WireError) -> Secret {
        let range = try take(try length(limit: Secret.maximumLength))
        guard let bytes = SecretBytes(copying: buffer, in: range) else { throw .tooShort }
        return Secret(bytes)
    }

    package mutating func optional<Value>(
        _ read: (inout WireReader) throws(WireError) -> Value
    ) throws(WireError) -> Value? {
        try flag() ? try read(&self) : nil
    }

    package mutating func date() throws(WireError) -> Date {
        let seconds = Double(bitPattern: try integer(UInt64.self))
        guard !seconds.isNaN else { throw .outOfBounds }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    package mutating func generation() throws(WireError) -> Generation {
        Generation(rawValue: try integer(UInt64.self))
    }
}
