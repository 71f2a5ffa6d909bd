internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The plaintext of an item's metadata and body, and their padding.
enum ItemCoding {
    /// The most that labels, attributes and names may take together: 64 KiB.
    static let maximumMetadata = 64 << 10

    /// The metadata of an item, padded. A deletion carries only service and key.
    static func metadata(
        service: String, key: TokenKey, label: String?, attributes: TokenAttributes,
        created: Date, modified: Date, expires: Date?
    ) -> [UInt8] {
        var writer = ByteWriter(reserving: 256)
        writer.append(text: service)
        writer.append(text: key.name)
        writer.append(milliseconds(created))
        writer.append(milliseconds(modified))
        writer.append(UInt8(expires == nil ? 0 : 1))
        writer.append(expires.map(milliseconds) ?? 0)
        writer.append(UInt8(label == nil ? 0 : 1))
        writer.append(text: label ?? "")
        writer.append(UInt16(attributes.count))
        for (name, value) in attributes {
            writer.append(text: name)
            writer.append(text: value)
        }
        let length = writer.bytes.count
        var padded = ByteWriter(reserving: VaultFormat.padded(length + 4))
        padded.append(UInt32(length))
        padded.append(writer.bytes)
        padded.appendZeros(VaultFormat.padded(length + 4) - length - 4)
        return padded.bytes
    }

    /// Reads what ``metadata(service:key:label:attributes:created:modified:expires:)`` wrote.
    static func decodeMetadata(
        _ bytes: [UInt8], policy: AccessPolicy, generation: UInt64
    ) throws(FormatError) -> TokenMetadata {
        var outer = ByteReader(bytes)
        let length = Int(try outer.integer(UInt32.self))
        guard length <= outer.remaining else { throw .outOfBounds }
        var reader = ByteReader(bytes, in: 4..<4 + length)
        let service = try reader.text(limit: TokenKey.maximumLength)
        let key = TokenKey(try reader.text(limit: TokenKey.maximumLength))
        let created = date(try reader.integer(Int64.self))
        let modified = date(try reader.integer(Int64.self))
        let hasExpiry = try reader.integer(UInt8.self) != 0
        let expiry = try reader.integer(Int64.self)
        let hasLabel = try reader.integer(UInt8.self) != 0
        let label = try reader.text(limit: maximumMetadata)
        let count = Int(try reader.integer(UInt16.self))
        guard count <= TokenAttributes.maximumCount else { throw .outOfBounds }
        var attributes = TokenAttributes()
        for _ in 0..<count {
            let name = try reader.text(limit: maximumMetadata)
            attributes[name] = try reader.text(limit: maximumMetadata)
        }
        return TokenMetadata(
            key: key, service: service, policy: policy, label: hasLabel ? label : nil,
            attributes: attributes, created: created, modified: modified,
            expires: hasExpiry ? date(expiry) : nil, generation: Generation(rawValue: generation))
    }

    /// A secret preceded by its length in eight bytes and padded with zeros.
    static func body(_ secret: Secret) -> SecretBytes {
        let capacity = VaultFormat.padded(secret.count + 8)
        return SecretBytes(prefixingLengthOf: secret.bytes, paddedTo: capacity)
    }

    /// Reads what ``body(_:)`` wrote.
    static func decodeBody(_ bytes: SecretBytes) throws(FormatError) -> Secret {
        guard let secret = bytes.unprefixed() else { throw .outOfBounds }
        return Secret(secret)
    }

    // Milliseconds, so that a date written as RFC 3339 with milliseconds comes back the same.
    private static func milliseconds(_ date: Date) -> Int64 {
        let value = (date.timeIntervalSince1970 * 1_000).rounded()
        return Int64(exactly: max(-9e15, min(9e15, value.isNaN ? 0 : value))) ?? 0
    }

    private static func date(_ milliseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }
}
