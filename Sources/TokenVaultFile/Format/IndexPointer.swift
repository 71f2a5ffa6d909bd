internal import TokenVaultCore
internal import TokenVaultCrypto

/// The sector behind the keybag copies that says where the newest index is.
///
/// Readers do not trust it: the frame that it leads to has to authenticate and to be of this file. With a
/// wrong pointer, or none, a reader walks the whole log.
struct IndexPointer: Equatable, Sendable {
    /// The offset of the index's last frame.
    var offset: Int

    static let length = VaultFormat.sector
    private static let magic = Array("TVINDEX1".utf8)
    private static let checksumLength = 16

    /// Returns the sector.
    func encoded() -> [UInt8] {
        var writer = ByteWriter(reserving: Self.length)
        writer.append(Self.magic)
        writer.append(UInt64(offset))
        writer.append(Hash.digest(writer.bytes, length: Self.checksumLength))
        writer.appendZeros(Self.length - writer.bytes.count)
        return writer.bytes
    }

    init(offset: Int) { self.offset = offset }

    /// Decodes a sector. Throws ``FormatError/wrongMagic`` for a sector that is all zeros: there is no index.
    init(decoding bytes: [UInt8]) throws(FormatError) {
        guard bytes.count == Self.length else { throw .tooShort }
        if isAllZero(bytes) { throw .wrongMagic }
        var reader = ByteReader(bytes)
        let magic = try reader.bytes(Self.magic.count)
        let offset = try reader.integer(UInt64.self)
        let checksum = try reader.bytes(Self.checksumLength)
        let authenticated = Self.magic.count + 8
        guard magic == Self.magic, offset <= IndexFormat.largestOffset,
            checksum == Hash.digest(bytes, in: 0..<authenticated, length: Self.checksumLength),
            isAllZero(bytes, in: authenticated + Self.checksumLength..<bytes.count)
        else { throw .wrongChecksum }
        self.offset = Int(offset)
    }
}
