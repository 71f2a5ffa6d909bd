internal import TokenVaultCore
internal import TokenVaultCrypto

/// The secret that this device keeps outside the vault.
struct DeviceKey: Sendable {
    /// 16 random bytes that name the device in the keybag.
    let identifier: [UInt8]
    let key: SymmetricKey

    /// The tag that frames carry for this device's class set: never zero, which is the portable set.
    var setTag: UInt64 { Self.setTag(of: identifier) }

    static func setTag(of device: [UInt8]) -> UInt64 {
        if device == Keybag.ClassSet.portable { return 0 }
        return device.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } | 1
    }

    private static let magic = Array("TVDEVIC1".utf8)
    static let encodedLength = 8 + 16 + SymmetricKey.length + 16

    static func random() throws(CryptoError) -> DeviceKey {
        DeviceKey(identifier: Random.bytes(16), key: try SymmetricKey.random())
    }

    /// Returns the file's contents: magic, identifier, key, BLAKE2b-128 of all before. The caller wipes them.
    func encoded() -> [UInt8]? {
        guard let secret = SymmetricKey.concatenating([key]) else { return nil }
        // Allocated at once in full length: memory that grows leaves copies.
        var bytes = [UInt8](repeating: 0, count: Self.encodedLength)
        bytes.replaceSubrange(0..<8, with: Self.magic)
        bytes.replaceSubrange(8..<24, with: identifier)
        secret.withBytes { secret in
            for place in secret.byteOffsets {
                bytes[24 + place] = unsafe secret.unsafeLoad(fromByteOffset: place, as: UInt8.self)
            }
        }
        let end = Self.encodedLength - 16
        bytes.replaceSubrange(end..., with: Hash.digest(bytes, in: 0..<end, length: 16))
        return bytes
    }

    init(identifier: [UInt8], key: SymmetricKey) {
        self.identifier = identifier
        self.key = key
    }

    /// Returns `nil` for contents that are not whole.
    init?(decoding bytes: [UInt8]) {
        guard bytes.count == Self.encodedLength, bytes.starts(with: Self.magic),
            Hash.digest(bytes, in: 0..<bytes.count - 16, length: 16) == Array(bytes.suffix(16)),
            let key = try? SymmetricKey(copying: SecretBytes(copying: bytes[24..<24 + SymmetricKey.length]))
        else { return nil }
        identifier = Array(bytes[8..<24])
        self.key = key
    }
}
