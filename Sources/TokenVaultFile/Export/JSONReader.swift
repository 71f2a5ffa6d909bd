internal import TokenVaultCore
internal import TokenVaultCrypto

/// Reads JSON (RFC 8259) from bytes that stay where they are. Texts are found first; a caller that wants one
/// copies it, into memory of its own choice.
///
/// Every call gets the bytes that the reader was made for.
struct JSONReader {
    /// The error for bytes that are not the expected JSON.
    struct Malformed: Error {
        let mistake: ItemLine.Mistake

        init(_ mistake: ItemLine.Mistake = .notAnItem) { self.mistake = mistake }
    }

    private var position: Int
    private let end: Int

    // No item is nested deeper.
    private static let deepest = 64

    /// Reads `range` of `bytes`.
    init(_ bytes: [UInt8], in range: Range<Int>) {
        let range = range.clamped(to: 0..<bytes.count)
        position = range.lowerBound
        end = range.upperBound
    }

    /// Reads an object; `member` reads each value after its name was read.
    mutating func readObject(
        _ bytes: [UInt8], _ member: (Text, inout JSONReader) throws(Malformed) -> Void
    ) throws(Malformed) {
        try take("{", bytes)
        if next(bytes) == UInt8(ascii: "}") { return position += 1 }
        while true {
            let name = try readText(bytes)
            try take(":", bytes)
            try member(name, &self)
            if next(bytes) == UInt8(ascii: "}") { return position += 1 }
            try take(",", bytes)
        }
    }

    /// Returns whether nothing but white space is left.
    mutating func isAtEnd(_ bytes: [UInt8]) -> Bool { next(bytes) == nil }

    /// Skips `null` if that is next; returns whether it was.
    mutating func takeNull(_ bytes: [UInt8]) -> Bool {
        guard next(bytes) == UInt8(ascii: "n") else { return false }
        return takeWord("null", bytes)
    }

    // MARK: - Texts

    /// A text that was read: its place, and its length without its escapes.
    struct Text {
        fileprivate let range: Range<Int>
        fileprivate let length: Int

        fileprivate var isPlain: Bool { length == range.count }

        /// Returns the text, in ordinary memory.
        func string(in bytes: [UInt8]) -> String {
            if isPlain { return String(decoding: bytes[range], as: UTF8.self) }
            var plain: [UInt8] = []
            plain.reserveCapacity(length)
            decode(bytes) { plain.append($0) }
            return String(decoding: plain, as: UTF8.self)
        }

        /// Returns the text's bytes, in memory that is wiped.
        func secretBytes(in bytes: [UInt8]) -> SecretBytes {
            unsafe SecretBytes(capacity: length) { target in
                if isPlain {
                    unsafe bytes.withUnsafeBytes {
                        unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[range]))
                    }
                    return length
                }
                var count = 0
                decode(bytes) { byte in
                    if count < target.count { unsafe target[count] = byte }
                    count += 1
                }
                return count
            }
        }

        /// Decodes a text whose escapes are known to be whole.
        private func decode(_ bytes: [UInt8], _ emit: (UInt8) -> Void) {
            var position = range.lowerBound
            while position < range.upperBound {
                guard bytes[position] == JSONReader.backslash else {
                    emit(bytes[position])
                    position += 1
                    continue
                }
                guard let (scalar, length) = JSONReader.escape(bytes, at: position, before: range.upperBound)
                else { return }
                for byte in UTF8.encode(scalar).map(Array.init) ?? [] { emit(byte) }
                position += length
            }
        }
    }

    /// Reads a text: UTF-8, without control characters, every escape whole.
    mutating func readText(_ bytes: [UInt8]) throws(Malformed) -> Text {
        try take("\"", bytes)
        let start = position
        var length = 0
        while position < end {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                let range = start..<position
                guard isUTF8(bytes, range) else { throw Malformed() }
                position += 1
                return Text(range: range, length: length)
            case Self.backslash:
                guard let (scalar, count) = Self.escape(bytes, at: position, before: end) else {
                    throw Malformed()
                }
                position += count
                length += UTF8.width(scalar)
            case 0..<0x20: throw Malformed()
            default:
                position += 1
                length += 1
            }
        }
        throw Malformed()
    }

    private func isUTF8(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        do {
            _ = try UTF8Span(validating: bytes.span.extracting(range))
            return true
        } catch { return false }
    }

    fileprivate static let backslash = UInt8(ascii: "\\")

    /// Returns the character that the escape at `position` stands for, and the escape's length.
    fileprivate static func escape(
        _ bytes: [UInt8], at position: Int, before end: Int
    ) -> (Unicode.Scalar, Int)? {
        guard position + 1 < end else { return nil }
        switch bytes[position + 1] {
        case UInt8(ascii: "\""): return ("\"", 2)
        case UInt8(ascii: "\\"): return ("\\", 2)
        case UInt8(ascii: "/"): return ("/", 2)
        case UInt8(ascii: "b"): return ("\u{8}", 2)
        case UInt8(ascii: "f"): return ("\u{c}", 2)
        case UInt8(ascii: "n"): return ("\n", 2)
        case UInt8(ascii: "r"): return ("\r", 2)
        case UInt8(ascii: "t"): return ("\t", 2)
        case UInt8(ascii: "u"):
            guard let unit = codeUnit(bytes, at: position, before: end) else { return nil }
            if let scalar = Unicode.Scalar(unit) { return (scalar, 6) }
            // The first of two surrogate halves; the second one follows.
            guard (0xd800..<0xdc00).contains(unit), let low = codeUnit(bytes, at: position + 6, before: end),
                (0xdc00..<0xe000).contains(low),
                let scalar = Unicode.Scalar(0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00))
            else { return nil }
            return (scalar, 12)
        default: return nil
        }
    }

    /// Returns the number of `\u1234`.
    private static func codeUnit(_ bytes: [UInt8], at position: Int, before end: Int) -> UInt32? {
        guard position + 6 <= end, bytes[position] == backslash, bytes[position + 1] == UInt8(ascii: "u")
        else {
            return nil
        }
        var unit: UInt32 = 0
        for digit in bytes[position + 2..<position + 6] {
            switch digit {
            case 0x30...0x39: unit = unit << 4 | UInt32(digit - 0x30)
            case 0x41...0x46, 0x61...0x66: unit = unit << 4 | UInt32((digit & 0x5f) - 0x41 + 10)
            default: return nil
            }
        }
        return unit
    }

    // MARK: - Skipped values

    /// Skips a value of any type.
    mutating func skipValue(_ bytes: [UInt8]) throws(Malformed) { try skipValue(bytes, depth: 0) }

    private mutating func skipValue(_ bytes: [UInt8], depth: Int) throws(Malformed) {
        guard depth < Self.deepest else { throw Malformed() }
        switch next(bytes) {
        case UInt8(ascii: "\""): _ = try readText(bytes)
        case UInt8(ascii: "{"):
            try readObject(bytes) { (_, reader) throws(Malformed) in
                try reader.skipValue(bytes, depth: depth + 1)
            }
        case UInt8(ascii: "["):
            position += 1
            if next(bytes) == UInt8(ascii: "]") { return position += 1 }
            while true {
                try skipValue(bytes, depth: depth + 1)
                if next(bytes) == UInt8(ascii: "]") { return position += 1 }
                try take(",", bytes)
            }
        case UInt8(ascii: "t"): guard takeWord("true", bytes) else { throw Malformed() }
        case UInt8(ascii: "f"): guard takeWord("false", bytes) else { throw Malformed() }
        case UInt8(ascii: "n"): guard takeWord("null", bytes) else { throw Malformed() }
        default: try skipNumber(bytes)
        }
    }

    private mutating func skipNumber(_ bytes: [UInt8]) throws(Malformed) {
        if position < end, bytes[position] == UInt8(ascii: "-") { position += 1 }
        let isZero = position < end && bytes[position] == UInt8(ascii: "0")
        let digits = skipDigits(bytes)
        guard digits > 0, !isZero || digits == 1 else { throw Malformed() }
        if position < end, bytes[position] == UInt8(ascii: ".") {
            position += 1
            guard skipDigits(bytes) > 0 else { throw Malformed() }
        }
        if position < end, bytes[position] | 0x20 == UInt8(ascii: "e") {
            position += 1
            if position < end, [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(bytes[position]) {
                position += 1
            }
            guard skipDigits(bytes) > 0 else { throw Malformed() }
        }
    }

    private mutating func skipDigits(_ bytes: [UInt8]) -> Int {
        let start = position
        while position < end, (0x30...0x39).contains(bytes[position]) { position += 1 }
        return position - start
    }

    // MARK: - Bytes

    /// Returns the next byte that is no white space, without consuming it; `nil` at the end.
    private mutating func next(_ bytes: [UInt8]) -> UInt8? {
        while position < end {
            switch bytes[position] {
            case 0x20, 0x09, 0x0a, 0x0d: position += 1
            case let byte: return byte
            }
        }
        return nil
    }

    private mutating func take(_ mark: Unicode.Scalar, _ bytes: [UInt8]) throws(Malformed) {
        guard next(bytes) == UInt8(ascii: mark) else { throw Malformed() }
        position += 1
    }

    private mutating func takeWord(_ word: StaticString, _ bytes: [UInt8]) -> Bool {
        let count = word.utf8CodeUnitCount
        guard position + count <= end, "\(word)".utf8.elementsEqual(bytes[position..<position + count]) else {
            return false
        }
        position += count
        return true
    }
}
