internal import CSodium

/// What deriving a key from a passphrase costs.
package struct PasswordHashCost: Equatable, Sendable {
    /// Passes over the memory (libsodium's `opslimit`).
    package var passes: UInt32
    /// Memory in bytes (libsodium's `memlimit`).
    package var memory: UInt64

    package init(passes: UInt32, memory: UInt64) {
        self.passes = passes
        self.memory = memory
    }

    /// The least a new slot may cost: 3 passes over 64 MiB.
    package static let minimum = PasswordHashCost(passes: 3, memory: 64 << 20)
    /// libsodium's MODERATE: 3 passes over 256 MiB, 0.8 s on the reference machine.
    package static let moderate = PasswordHashCost(passes: 3, memory: 256 << 20)
    /// The most a file may ask of the machine that opens it: 12 passes over 2 GiB.
    package static let maximum = PasswordHashCost(passes: 12, memory: 2 << 30)
}

/// Argon2id (`crypto_pwhash`, `crypto_pwhash_ALG_ARGON2ID13`).
package enum PasswordHash {
    /// The length of a salt, in bytes.
    package static let saltLength = 16

    /// The key that `passphrase` gives with `salt` (16 bytes) at `cost`.
    package static func derive(
        passphrase: SecretBytes, salt: [UInt8], cost: PasswordHashCost
    ) throws(CryptoError) -> SymmetricKey {
        guard salt.count == saltLength else { throw .invalidParameter }
        return try SymmetricKey { (target) throws(CryptoError) in
            let result = passphrase.withUnsafeBytes { passphrase in
                crypto_pwhash(
                    target.octets, UInt64(SymmetricKey.length),
                    UnsafeRawPointer(passphrase.octets).assumingMemoryBound(to: CChar.self),
                    UInt64(passphrase.count),
                    salt, UInt64(cost.passes), Int(clamping: cost.memory),
                    crypto_pwhash_alg_argon2id13())
            }
            guard result == 0 else { throw .outOfMemory }
        }
    }
}
