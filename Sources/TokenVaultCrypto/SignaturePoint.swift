internal import CSodium

/// Public keys of Ed25519 (RFC 8032), which others make.
package enum SignaturePoint {
    /// Whether `bytes` are a key that one secret belongs to (`crypto_core_ed25519_is_valid_point`): 32 bytes in their one form, on
    /// the curve, in its main subgroup, and not of small order. Under a key of small order a signature may be good for every
    /// message.
    package static func isValid(_ bytes: [UInt8]) -> Bool {
        _ = Sodium.isReady
        guard bytes.count == Int(crypto_core_ed25519_bytes()) else { return false }
        return bytes.withUnsafeBytes { crypto_core_ed25519_is_valid_point($0.octets) == 1 }
    }
}
