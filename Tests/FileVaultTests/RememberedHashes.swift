import Synchronization
import TokenVaultCrypto

/// Derives the key of each passphrase, salt and cost once. Deriving the same keys for every state of a disk took two thirds of
/// the time of the crash tests.
enum RememberedHashes {
    private struct Input: Hashable {
        var passphrase: [UInt8]
        var salt: [UInt8]
        var passes: UInt32
        var memory: UInt64
    }

    private static let keys = Mutex<[Input: [UInt8]]>([:])

    @Sendable static func derive(
        passphrase: SecretBytes, salt: [UInt8], cost: PasswordHashCost
    ) throws(CryptoError) -> SymmetricKey {
        let input = Input(
            passphrase: passphrase.withUnsafeBytes { Array($0) }, salt: salt, passes: cost.passes,
            memory: cost.memory)
        if let known = keys.withLock({ $0[input] }) {
            return try SymmetricKey(copying: SecretBytes(copying: known))
        }
        let key = try PasswordHash.derive(passphrase: passphrase, salt: salt, cost: cost)
        keys.withLock { $0[input] = key.withBytes { Array($0) } }
        return key
    }
}
