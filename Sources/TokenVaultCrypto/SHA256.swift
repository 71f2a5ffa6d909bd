internal import CSodium

extension Hash {
    /// Returns the SHA-256 digest of `bytes`, 32 bytes long (`crypto_hash_sha256`), for protocols that
    /// require it. TokenVault itself uses BLAKE2b.
    package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        _ = Sodium.isReady
        return [UInt8](unsafeUninitializedCapacity: 32) { output, initialized in
            bytes.withUnsafeBufferPointer { input in
                _ = crypto_hash_sha256(
                    output.octets, UnsafeRawBufferPointer(input).octets, UInt64(input.count))
            }
            initialized = 32
        }
    }
}
