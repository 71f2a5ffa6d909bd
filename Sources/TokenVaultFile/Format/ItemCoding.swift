internal import TokenVaultCore
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The plaintext of an item's metadata and body, and their padding.
enum ItemCoding {
    /// Returns the metadata of an item, padded. A deletion carries only service, key and dates.
    static func metadata(_ stored: StoredMetadata) -> [UInt8] {
        let item = stored.metadata
        let (service, key, label, attributes) = (item.service, item.key, item.label, item.attributes)
        var length = fixedLength + service.utf8.count + key.name.utf8.count + (label?.utf8.count ?? 0)
        for (name, value) in attributes { length += 8 + name.utf8.count + value.utf8.count }
        length += stored.policyProof?.count ?? 0
        let padded = VaultFormat.padded(length + 4)
        var writer = ByteWriter(reserving: padded)
        writer.append(UInt32(length))
        writer.append(text: service)
        writer.append(text: key.name)
        writer.append(VaultFormat.milliseconds(item.created))
        writer.append(VaultFormat.milliseconds(item.modified))
        writer.append(UInt8(item.expires == nil ? 0 : 1))
        writer.append(item.expires.map(VaultFormat.milliseconds) ?? 0)
        writer.append(UInt8(label == nil ? 0 : 1))
        writer.append(text: label ?? "")
        writer.append(UInt16(attributes.count))
        for (name, value) in attributes {
            writer.append(text: name)
            writer.append(text: value)
        }
        writer.append(UInt8(stored.policyProof == nil ? 0 : 1))
        writer.append(stored.policyProof ?? [])
        writer.appendZeros(padded - length - 4)
        return writer.bytes
    }

    // The fixed part of all metadata: the lengths of three texts, three dates, three marks and a count.
    private static let fixedLength = 3 * 4 + 3 * 8 + 3 + 2

    /// Reads the output of ``metadata(_:)``.
    static func decodeMetadata(
        _ bytes: [UInt8], policy: AccessPolicy, generation: UInt64
    ) throws(FormatError) -> StoredMetadata {
        let parts = try parts(of: bytes, count: bytes.count) {
            (reader, limit) throws(FormatError) in try reader.text(limit: limit)
        }
        var attributes = TokenAttributes()
        for (name, value) in parts.attributes { attributes[name] = value }
        return StoredMetadata(
            metadata: TokenMetadata(
                key: TokenKey(parts.key), service: parts.service, policy: policy, label: parts.label,
                attributes: attributes, created: date(parts.created), modified: date(parts.modified),
                expires: parts.expiry.map(date), generation: Generation(rawValue: generation)),
            policyProof: parts.policyProof)
    }

    /// Returns whether ``decodeMetadata(_:policy:generation:)`` would read the first `count` of `bytes`,
    /// without decoding them.
    static func isMetadata(_ bytes: [UInt8], count: Int) -> Bool {
        let parts = try? parts(of: bytes, count: count) {
            (reader, limit) throws(FormatError) in try reader.skipText(limit: limit)
        }
        return parts != nil
    }

    private struct Parts<Text> {
        let service, key: Text
        let created, modified: Int64
        let expiry: Int64?
        let label: Text?
        let attributes: [(Text, Text)]
        let policyProof: [UInt8]?
    }

    @inline(__always)
    private static func parts<Text>(
        of bytes: [UInt8], count: Int, _ text: (inout ByteReader, Int) throws(FormatError) -> Text
    ) throws(FormatError) -> Parts<Text> {
        var outer = ByteReader(bytes, in: 0..<count)
        let length = Int(try outer.integer(UInt32.self))
        guard length <= outer.remaining else { throw .outOfBounds }
        var reader = ByteReader(bytes, in: 4..<4 + length)
        let service = try text(&reader, TokenKey.maximumLength)
        let key = try text(&reader, TokenKey.maximumLength)
        let created = try reader.integer(Int64.self)
        let modified = try reader.integer(Int64.self)
        let hasExpiry = try reader.integer(UInt8.self) != 0
        let expiry = try reader.integer(Int64.self)
        let hasLabel = try reader.integer(UInt8.self) != 0
        let label = try text(&reader, Validation.longestTexts)
        let attributeCount = Int(try reader.integer(UInt16.self))
        guard attributeCount <= TokenAttributes.maximumCount else { throw .outOfBounds }
        var attributes: [(Text, Text)] = []
        for _ in 0..<attributeCount {
            attributes.append(
                (try text(&reader, Validation.longestTexts), try text(&reader, Validation.longestTexts)))
        }
        let hasProof = try reader.integer(UInt8.self) != 0
        let proof = hasProof ? try reader.bytes(PolicyProof.length) : nil
        return Parts(
            service: service, key: key, created: created, modified: modified,
            expiry: hasExpiry ? expiry : nil, label: hasLabel ? label : nil, attributes: attributes,
            policyProof: proof)
    }

    /// Returns a secret preceded by its length in eight bytes and padded with zeros.
    static func body(_ secret: Secret) -> SecretBytes {
        SecretBytes(prefixingLengthOf: secret.bytes, paddedTo: bodyLength(of: secret))
    }

    /// Returns the length of ``body(_:)``.
    static func bodyLength(of secret: Secret) -> Int { VaultFormat.padded(secret.count + 8) }

    /// Reads the output of ``body(_:)``.
    static func decodeBody(_ bytes: SecretBytes) throws(FormatError) -> Secret {
        guard let secret = bytes.unprefixed() else { throw .outOfBounds }
        return Secret(secret)
    }

    private static func date(_ milliseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }
}

/// An item's metadata before sealing.
struct StoredMetadata {
    var metadata: TokenMetadata
    /// The code that proves that a holder of the root key chose the policy; see ``PolicyProof``. `nil` where
    /// there is none.
    var policyProof: [UInt8]?
}
