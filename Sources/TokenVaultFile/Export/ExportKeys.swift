internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The keys of an export file, from its passphrase alone and not from the vault it was made from.
struct ExportKeys {
    /// The key that seals the stream.
    let stream: SymmetricKey
    /// The value that ties the file to the passphrase: another passphrase gives another value.
    let commitment: [UInt8]

    init(
        passphrase: Secret, salt: [UInt8], cost: PasswordHashCost, within limit: DerivationLimit
    ) throws(TokenStorageError) {
        let key = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.passphraseKey(passphrase, salt: salt, cost: cost, within: limit)
        }
        do throws(CryptoError) {
            stream = try Hash.derive(from: key, label: "tokenvault 1 export stream", parts: [salt])
            let message = Array("tokenvault 1 export commitment".utf8) + [0] + salt
            guard let code = Hash.keyed(message, key: key, length: 32) else { throw .unavailable }
            commitment = code
        } catch {
            throw .crypto(error)
        }
    }
}
