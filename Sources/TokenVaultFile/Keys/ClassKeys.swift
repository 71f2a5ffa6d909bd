internal import TokenVaultCore
internal import TokenVaultCrypto

/// The two keys of a class: one for names and labels, one for secrets.
final class ClassKeys: Sendable {
    let policy: AccessPolicy
    let version: UInt32
    let setTag: UInt64
    let metadata: SymmetricKey
    let secret: SymmetricKey
    /// The key of the policy proofs of the after-first-unlock class beside this one; `nil` for other
    /// policies.
    let policyProof: SymmetricKey?
    /// The data that the class's seals are bound to.
    let itemMetadata, itemBody, deletionMetadata: SealData

    init(
        policy: AccessPolicy, version: UInt32, setTag: UInt64, metadata: SymmetricKey,
        secret: SymmetricKey, vault: VaultIdentifier
    ) throws(CryptoError) {
        self.policy = policy
        self.version = version
        self.setTag = setTag
        self.metadata = metadata
        self.secret = secret
        let isGate = AccessPolicy.allCases.contains { PolicyProof.gate(of: $0) == policy }
        policyProof = isGate ? try PolicyProof.key(from: secret, vault: vault) : nil
        func data(_ purpose: SealData.Purpose) -> SealData {
            SealData(purpose, vault: vault, policy: policy, version: version, setTag: setTag)
        }
        itemMetadata = data(.itemMetadata)
        itemBody = data(.itemBody)
        deletionMetadata = data(.deletionMetadata)
    }

    func wipe() {
        metadata.wipe()
        secret.wipe()
        policyProof?.wipe()
    }
}
