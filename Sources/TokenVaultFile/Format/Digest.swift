internal import TokenVaultCore
internal import TokenVaultCrypto

/// 32 bytes of BLAKE2b, without an array of their own: a log has three digests a frame.
struct Digest: Hashable, Sendable {
    private let words: Words

    private struct Words: Hashable, Sendable { let first, second, third, fourth: UInt64 }

    static let length = 32

    /// 32 zeros.
    static let zero = Digest((0, 0, 0, 0))

    private init(_ words: Hash.Words) {
        self.words = Words(first: words.0, second: words.1, third: words.2, fourth: words.3)
    }

    /// Creates the digest of a part of `bytes`.
    init(of bytes: [UInt8], in range: Range<Int>? = nil) { self.init(Hash.words(of: bytes, in: range)) }

    /// Creates the digest of a part of `bytes` keyed with `key`; `nil` when the key was wiped.
    init?(of bytes: [UInt8], in range: Range<Int>? = nil, key: SymmetricKey) {
        guard let words = Hash.words(of: bytes, in: range, key: key) else { return nil }
        self.init(words)
    }

    /// Creates the digest of a part of `bytes` keyed with `key`.
    init(of bytes: [UInt8], in range: Range<Int>, with key: borrowing KeyUse) {
        self.init(Hash.words(of: bytes, in: range, with: key))
    }

    init(_ reader: inout ByteReader) throws(FormatError) {
        words = Words(
            first: try reader.integer(UInt64.self), second: try reader.integer(UInt64.self),
            third: try reader.integer(UInt64.self), fourth: try reader.integer(UInt64.self))
    }

    /// Takes the last 32 of `bytes`, or zeros where there are fewer.
    init(endOf bytes: [UInt8]) {
        var reader = ByteReader(bytes, in: max(0, bytes.count - Self.length)..<bytes.count)
        self = (try? Digest(&reader)) ?? .zero
    }

    /// The first eight bytes, in little-endian order.
    var tag: UInt64 { words.first }

    func append(to writer: inout ByteWriter) {
        for word in [words.first, words.second, words.third, words.fourth] { writer.append(word) }
    }

    /// Writes the bytes at `offset`. There must be room for them.
    func put(into bytes: inout [UInt8], at offset: Int) {
        putFirstHalf(into: &bytes, at: offset)
        bytes.put(words.third, at: offset + 16)
        bytes.put(words.fourth, at: offset + 24)
    }

    /// Writes the first 16 bytes at `offset`. There must be room for them.
    func putFirstHalf(into bytes: inout [UInt8], at offset: Int) {
        bytes.put(words.first, at: offset)
        bytes.put(words.second, at: offset + 8)
    }

    /// Returns whether the first 16 bytes are those at `offset` of `bytes`.
    func beginsAs(_ bytes: [UInt8], at offset: Int) -> Bool {
        var reader = ByteReader(bytes, in: offset..<offset + 16)
        return (try? reader.integer(UInt64.self)) == words.first
            && (try? reader.integer(UInt64.self)) == words.second
    }
}
