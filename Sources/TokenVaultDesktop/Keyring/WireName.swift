internal import TokenVaultCore
internal import TokenVaultCrypto

/// How names and texts of attributes are written in the keyring.
///
/// Most stay unchanged, so that the user finds an item by them. An empty text, and a text with control characters, are
/// Base64 (RFC 4648) behind a mark. The service does not take such a text, or a collection without a password would
/// spoil it. A text that begins like the mark is written so, too.
enum WireName {
    private static let mark = "tokenvault:base64:"

    static func encode(_ name: String) -> String {
        guard name.isEmpty || NameRules.hasControlCharacters(name) || name.utf8.starts(with: mark.utf8) else {
            return name
        }
        return mark + String(decoding: Base64.encode(SecretBytes(copying: name.utf8)).array(), as: UTF8.self)
    }

    /// What ``encode(_:)`` was given; `nil` for what it does not write, so that a name is found as it is written.
    static func name(in written: String) -> String? {
        decode(written).flatMap { Bytes.areEqual(encode($0), written) ? $0 : nil }
    }

    /// What ``encode(_:)`` was given, or a text as another program has it; `nil` for what is no Base64 behind the mark.
    static func decode(_ written: String) -> String? {
        guard written.utf8.starts(with: mark.utf8) else { return written }
        let encoded = SecretBytes(copying: written.utf8.dropFirst(mark.utf8.count))
        guard let name = Base64.decode(encoded).flatMap({ Secret($0).unprotectedText() }) else { return nil }
        return Bytes.areEqual(encode(name), written) ? name : nil
    }
}
