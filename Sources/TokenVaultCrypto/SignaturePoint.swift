internal import CSodium

/// Public keys of Ed25519 (RFC 8032) from other parties.
package enum SignaturePoint {
    /// Returns whether `bytes` are a key that one secret belongs to (`crypto_core_ed25519_is_valid_point`).
    /// They must be 32 bytes in canonical form, on the curve, in its main subgroup, and not of small order.
    /// Under a key of small order one signature may be valid for every message.
    package static func isValid(_ bytes: [UInt8]) -> Bool {
        _ = Sodium.isReady
        guard bytes.count == Int(crypto_core_ed25519_bytes()) else { return false }
        return bytes.withUnsafeBytes { crypto_core_ed25519_is_valid_point($0.octets) == 1 }
    }
}
