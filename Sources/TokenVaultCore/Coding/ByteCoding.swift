/// Appends integers in little-endian order and bytes, for the formats of a vault.
@usableFromInline package struct ByteWriter {
    @usableFromInline package private(set) var bytes: [UInt8] = []

    @inlinable package init(reserving capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    @inlinable package mutating func append(_ value: some FixedWidthInteger) {
        unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    @inlinable package mutating func append(_ other: [UInt8]) { bytes += other }

    /// Appends a text preceded by its length in bytes of UTF-8, in four bytes.
    @inlinable package mutating func append(text: String) {
        append(UInt32(text.utf8.count))
        bytes += text.utf8
    }

    @inlinable package mutating func appendZeros(_ count: Int) { bytes += repeatElement(0, count: count) }
}

/// Reads the output of ``ByteWriter``. Every read is checked against the end: too few bytes give
/// ``FormatError``, never a trap.
@usableFromInline package struct ByteReader {
    @usableFromInline let bytes: [UInt8]
    @usableFromInline package private(set) var position: Int
    @usableFromInline let end: Int

    @inlinable package init(_ bytes: [UInt8], in range: Range<Int>? = nil) {
        self.bytes = bytes
        let range = (range ?? 0..<bytes.count).clamped(to: 0..<bytes.count)
        position = range.lowerBound
        end = range.upperBound
    }

    @inlinable package var remaining: Int { end - position }

    @inlinable package mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) throws(FormatError)
        -> Value
    {
        let count = Value.bitWidth / 8
        guard remaining >= count else { throw .tooShort }
        // In bounds: `end` is at most the number of bytes.
        let value = unsafe bytes.withUnsafeBytes { buffer in
            unsafe buffer.loadUnaligned(fromByteOffset: position, as: Value.self)
        }
        position += count
        return Value(littleEndian: value)
    }

    @inlinable package mutating func bytes(_ count: Int) throws(FormatError) -> [UInt8] {
        guard count >= 0, remaining >= count else { throw .tooShort }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    /// Reads a text of at most `limit` bytes.
    @inlinable package mutating func text(limit: Int) throws(FormatError) -> String {
        let range = try textRange(limit)
        return try text(in: range)
    }

    /// Skips what ``text(limit:)`` would return, throwing the same.
    @inlinable package mutating func skipText(limit: Int) throws(FormatError) {
        let range = try textRange(limit)
        if !bytes[range].allSatisfy({ $0 < 0x80 }) { _ = try text(in: range) }
    }

    @inlinable mutating func textRange(_ limit: Int) throws(FormatError) -> Range<Int> {
        let count = Int(try integer(UInt32.self))
        guard count <= limit else { throw .outOfBounds }
        guard count <= remaining else { throw .tooShort }
        defer { position += count }
        return position..<position + count
    }

    @inlinable func text(in range: Range<Int>) throws(FormatError) -> String {
        // Faster than `String(validating:as:)`: invalid UTF-8 decodes to other bytes, which differ below.
        let text = String(decoding: bytes[range], as: UTF8.self)
        guard text.utf8.count == range.count, text.utf8.elementsEqual(bytes[range]) else {
            throw .outOfBounds
        }
        return text
    }
}

extension [UInt8] {
    /// The bytes as hexadecimal digits, two a byte.
    package var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        let text = flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    /// Writes an integer at `offset`, in little-endian order. There must be room for it.
    @inlinable package mutating func put(_ value: UInt64, at offset: Int) {
        precondition(offset >= 0 && offset <= count - 8)
        unsafe withUnsafeMutableBytes { buffer in
            unsafe buffer.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt64.self)
        }
    }
}

/// The error for bytes that do not match their format.
@usableFromInline package enum FormatError: Error, Equatable {
    /// The bytes end before the value does.
    case tooShort
    /// A length, a count or a kind is outside its bounds.
    case outOfBounds
    /// The magic number is missing.
    case wrongMagic
    /// The checksum does not fit the bytes.
    case wrongChecksum
    /// A newer program wrote the bytes.
    case newerVersion
}
