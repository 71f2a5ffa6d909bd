package import TokenVaultCore
internal import TokenVaultCrypto

/// An item as a line of JSON: an object (RFC 8259) of the members that `vaultctl retrieve --json` prints.
///
/// A line is read by hand, byte by byte. A decoder of values would leave copies of secrets in strings that
/// cannot be wiped. It would also take more time than sealing and writing the item does.
package struct ItemLine: Sendable {
    /// The reason that a line is no item. It contains nothing of the line.
    package enum Mistake: Error, Equatable {
        /// The line is no JSON object, lacks the key, names a member twice or has a member of another type.
        case notAnItem
        /// The line has neither `value` nor `valueBase64`, or both.
        case notOneValue
        /// `valueBase64` is not Base64 of RFC 4648 with padding.
        case notBase64
        /// The line has a member of this name, which no item has.
        case unknownMember(String)
    }

    /// The service; `nil` when the line names none.
    package let service: String?
    /// The key.
    package let key: String
    /// The value, from either member.
    package let secret: Secret
    /// The policy's name; `nil` when the line names none.
    package let policy: String?
    /// The label; `nil` when the line has none.
    package let label: String?
    /// The attributes.
    package let attributes: TokenAttributes
    /// The expiry as written; `nil` when the line has none.
    package let expires: String?
    /// The policy's origin, as written; `nil` when the line names none.
    package let policyOrigin: String?

    /// The number of skipped members that no item has.
    package let unknownMembers: Int

    /// Reads the line that is `range` of `bytes`. Skips members that the storage decides itself (dates,
    /// generation). Skips members of other names if `ignoresUnknown` is true; otherwise they are a mistake. A
    /// member that is `null` counts as absent.
    package init(
        _ bytes: [UInt8], in range: Range<Int>, ignoresUnknown: Bool = false
    ) throws(Mistake) {
        do throws(JSONReader.Malformed) {
            var reader = JSONReader(bytes, in: range)
            var texts: [Member: JSONReader.Text] = [:]
            var found: Set<Member> = []
            var attributes = TokenAttributes()
            var unknown = 0
            try reader.readObject(bytes) { (name, reader) throws(JSONReader.Malformed) in
                let name = name.string(in: bytes)
                guard let member = Member(rawValue: name) else {
                    if !Self.decidedByStorage.contains(name) {
                        guard ignoresUnknown else { throw JSONReader.Malformed(.unknownMember(name)) }
                        unknown += 1
                    }
                    return try reader.skipValue(bytes)
                }
                guard found.insert(member).inserted else { throw JSONReader.Malformed() }
                if reader.takeNull(bytes) { return }
                if member == .attributes {
                    attributes = try Self.attributes(bytes, &reader)
                } else {
                    texts[member] = try reader.readText(bytes)
                }
            }
            guard reader.isAtEnd(bytes), let name = texts[.key] else { throw JSONReader.Malformed() }
            key = name.string(in: bytes)
            self.attributes = attributes
            unknownMembers = unknown
            service = texts[.service]?.string(in: bytes)
            policy = texts[.policy]?.string(in: bytes)
            label = texts[.label]?.string(in: bytes)
            expires = texts[.expires]?.string(in: bytes)
            policyOrigin = texts[.policyOrigin]?.string(in: bytes)
            self.secret = try Self.secret(texts, bytes)
        } catch {
            throw error.mistake
        }
    }

    private enum Member: String {
        case service, key, value, valueBase64, policy, label, attributes, expires, policyOrigin
    }

    /// The other members that `retrieve --json` prints.
    private static let decidedByStorage: Set<String> = ["created", "modified", "generation"]

    private static func attributes(
        _ bytes: [UInt8], _ reader: inout JSONReader
    ) throws(JSONReader.Malformed) -> TokenAttributes {
        var attributes = TokenAttributes()
        try reader.readObject(bytes) { (name, reader) throws(JSONReader.Malformed) in
            let name = name.string(in: bytes)
            guard attributes[name] == nil else { throw JSONReader.Malformed() }
            attributes[name] = try reader.readText(bytes).string(in: bytes)
        }
        return attributes
    }

    private static func secret(
        _ texts: [Member: JSONReader.Text], _ bytes: [UInt8]
    ) throws(JSONReader.Malformed) -> Secret {
        switch (texts[.value], texts[.valueBase64]) {
        case (let text?, nil): return Secret(text.secretBytes(in: bytes))
        case (nil, let text?):
            guard let decoded = Base64.decode(text.secretBytes(in: bytes)) else {
                throw JSONReader.Malformed(.notBase64)
            }
            return Secret(decoded)
        default: throw JSONReader.Malformed(.notOneValue)
        }
    }
}
