internal import TokenVaultCrypto

/// How a secret's bytes are written in the keyring.
///
/// Text stays as it is, so that a person can read it with `secret-tool`. What a keyring could spoil is
/// written in Base64 (RFC 4648): bytes that are not text, control characters (one newline makes
/// gnome-keyring lose a whole collection without a password), backslashes and spaces at the ends, which such
/// a collection reads back as something else.
enum WireEncoding: String {
    case text
    case base64

    /// The encoding that keeps `secret`.
    init(for secret: Secret) {
        self = unsafe secret.bytes.withUnsafeBytes { unsafe Self.isPlain($0) } ? .text : .base64
    }

    /// What the service is told of the value.
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
        // C1 controls are two bytes of UTF-8 and harmless; what is not UTF-8 is not text.
        return unsafe String(validating: bytes, as: UTF8.self) != nil
    }
}

/// Base64 of RFC 4648 with padding, in memory that is wiped.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let equals = UInt8(ascii: "=")
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xff, count: 256)
        for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }()

    static func encode(_ bytes: SecretBytes) -> SecretBytes {
        unsafe bytes.withUnsafeBytes { source in
            unsafe SecretBytes(capacity: (source.count + 2) / 3 * 4) { target in
                var written = 0
                for start in stride(from: 0, to: source.count, by: 3) {
                    let count = min(3, source.count - start)
                    var group: UInt32 = 0
                    for index in 0..<3 {
                        group = unsafe group << 8 | (index < count ? UInt32(source[start + index]) : 0)
                    }
                    for index in 0..<4 {
                        let letter = alphabet[Int(group >> UInt32(18 - 6 * index)) & 0x3f]
                        unsafe target[written + index] = index <= count ? letter : equals
                    }
                    written += 4
                }
                return written
            }
        }
    }

    /// `nil` when the bytes are not Base64.
    static func decode(_ bytes: SecretBytes) -> SecretBytes? {
        unsafe bytes.withUnsafeBytes { source in
            guard source.count % 4 == 0 else { return nil }
            var isValid = true
            let decoded = unsafe SecretBytes(capacity: source.count / 4 * 3) { target in
                var written = 0
                for start in stride(from: 0, to: source.count, by: 4) {
                    var padding = 0
                    if start + 4 == source.count {
                        if unsafe source[start + 3] == equals { padding = 1 }
                        if unsafe padding == 1 && source[start + 2] == equals { padding = 2 }
                    }
                    var group: UInt32 = 0
                    for index in 0..<4 {
                        let value = index < 4 - padding ? unsafe values[Int(source[start + index])] : 0
                        if value == 0xff { isValid = false }
                        group = group << 6 | UInt32(value & 0x3f)
                    }
                    for index in 0..<3 - padding {
                        unsafe target[written] = UInt8(truncatingIfNeeded: group >> UInt32(16 - 8 * index))
                        written += 1
                    }
                }
                return written
            }
            return isValid ? decoded : nil
        }
    }
}
