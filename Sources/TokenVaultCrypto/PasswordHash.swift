internal import CSodium
internal import TokenVaultPlatform

/// The cost of deriving a key from a passphrase.
package struct PasswordHashCost: Equatable, Sendable {
    /// The passes over the memory (libsodium's `opslimit`).
    package var passes: UInt32
    /// The memory in bytes (libsodium's `memlimit`).
    package var memory: UInt64

    package init(passes: UInt32, memory: UInt64) {
        self.passes = passes
        self.memory = memory
    }

    /// The lowest cost of a new slot: 3 passes over 64 MiB.
    package static let minimum = PasswordHashCost(passes: 3, memory: 64 << 20)
    /// libsodium's MODERATE: 3 passes over 256 MiB, 0.8 s on the reference machine.
    package static let moderate = PasswordHashCost(passes: 3, memory: 256 << 20)
    /// The highest cost that a vault file may demand of a machine that opens it: 12 passes over 2 GiB.
    package static let maximum = PasswordHashCost(passes: 12, memory: 2 << 30)
}

/// Argon2id (`crypto_pwhash`, `crypto_pwhash_ALG_ARGON2ID13`).
package enum PasswordHash {
    /// A function that derives the key of a passphrase with a salt at a cost.
    package typealias Derivation =
        @Sendable (_ passphrase: SecretBytes, _ salt: [UInt8], _ cost: PasswordHashCost) throws(CryptoError)
        ->
        SymmetricKey

    /// The processor time of one pass over a MiB in this machine's fastest memory, independent of other load.
    private static let timePerMebibyte: Duration = {
        let sample = PasswordHashCost(passes: 1, memory: 16 << 20)
        let start = ThreadClock.now
        guard
            (try? derive(
                passphrase: SecretBytes(copying: Array("only to be measured".utf8)),
                salt: [UInt8](repeating: 0, count: saltLength), cost: sample)) != nil
        else { return .zero }
        return start.duration(to: ThreadClock.now) / 16
    }()

    /// Returns the least time that ``derive(passphrase:salt:cost:)`` takes on this machine. It rarely takes
    /// twice as long when nothing else runs. Measured once, in a few milliseconds.
    package static func leastTime(for cost: PasswordHashCost) -> Duration {
        timePerMebibyte * (Double(cost.passes) * Double(cost.memory) / Double(1 << 20))
    }

    /// The length of a salt, in bytes.
    package static let saltLength = 16

    /// Derives the key of `passphrase` with `salt` (16 bytes) at `cost`.
    @Sendable package static func derive(
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
