internal import CSodium

/// Base64 of RFC 4648, section 4, with padding, in memory that is wiped (`sodium_bin2base64`,
/// `sodium_base642bin`).
package enum Base64 {
    private static let variant = CInt(sodium_base64_VARIANT_ORIGINAL)

    /// Returns `bytes` as letters, digits and padding.
    package static func encode(_ bytes: SecretBytes) -> SecretBytes {
        let length = (bytes.count + 2) / 3 * 4
        return bytes.withUnsafeBytes { source in
            // One more byte for the zero that ends a C string.
            SecretBytes(capacity: length + 1) { target in
                sodium_bin2base64(
                    target.start.assumingMemoryBound(to: CChar.self), target.count, source.octets,
                    source.count,
                    variant)
                return length
            }
        }
    }

    /// Returns the bytes from which ``encode(_:)`` made `text`, or `nil` when it is not Base64.
    package static func decode(_ text: SecretBytes) -> SecretBytes? {
        // libsodium takes some non-ASCII bytes for letters.
        guard text.count % 4 == 0, text.withUnsafeBytes({ $0.allSatisfy { $0 < 0x80 } }) else { return nil }
        var isWhole = false
        let bytes = text.withUnsafeBytes { source in
            SecretBytes(capacity: text.count / 4 * 3) { target in
                var count = 0
                isWhole =
                    sodium_base642bin(
                        target.octets, target.count,
                        UnsafeRawPointer(source.octets).assumingMemoryBound(to: CChar.self),
                        source.count, nil, &count, nil, variant) == 0
                return count
            }
        }
        return isWhole ? bytes : nil
    }
}
