internal import TokenVaultCore
internal import TokenVaultCrypto

/// How a secret's bytes are written in the keyring.
///
/// Text stays unchanged, so that the user can read it with `secret-tool`. Bytes that a keyring could spoil
/// are written in Base64 (RFC 4648):
/// - bytes that are not text;
/// - control characters, since one newline makes gnome-keyring lose a whole collection without a password;
/// - backslashes, and spaces at the ends, which such a collection reads back as something else.
enum WireEncoding: String {
    case text
    case base64

    /// The encoding that keeps `secret`.
    init(for secret: Secret) {
        self = unsafe secret.bytes.withUnsafeBytes { unsafe Self.isPlain($0) } ? .text : .base64
    }

    /// The content type of the value, for the service.
    var contentType: String { self == .text ? "text/plain" : "application/octet-stream" }

    /// The bytes to give to the service.
    func encode(_ secret: Secret) -> SecretBytes {
        self == .text ? secret.bytes : Base64.encode(secret.bytes)
    }

    /// The secret in what the service gave; `nil` when it is not in this encoding.
    func decode(_ bytes: SecretBytes) -> Secret? {
        self == .text ? Secret(bytes) : Base64.decode(bytes).map { Secret($0) }
    }

    private static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let first = unsafe bytes.first, let last = unsafe bytes.last else { return true }
        if first == 0x20 || last == 0x20 { return false }
        if unsafe bytes.contains(where: { $0 < 0x20 || $0 == 0x7f || $0 == 0x5c }) { return false }
        // C1 controls are two bytes of UTF-8 and harmless. Invalid UTF-8 is not text.
        return unsafe String(validating: bytes, as: UTF8.self) != nil
    }
}
