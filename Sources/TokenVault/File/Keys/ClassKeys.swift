internal import TokenVaultCrypto

/// The two keys of a class: one for names and labels, one for secrets.
final class ClassKeys: Sendable {
    let policy: AccessPolicy
    let version: UInt32
    let setTag: UInt64
    let metadata: SymmetricKey
    let secret: SymmetricKey

    init(
        policy: AccessPolicy, version: UInt32, setTag: UInt64, metadata: SymmetricKey,
        secret: SymmetricKey
    ) {
        self.policy = policy
        self.version = version
        self.setTag = setTag
        self.metadata = metadata
        self.secret = secret
    }

    func wipe() {
        metadata.wipe()
        secret.wipe()
    }
}
