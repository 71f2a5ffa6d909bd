internal import TokenVaultCore
internal import TokenVaultCrypto

/// Proves that a session with the root key chose an item's policy.
///
/// A session of limited scope holds the after-first-unlock keys and can seal any contents under them. So an
/// item of such a policy carries a code, keyed from the when-unlocked class of the same set and version. The
/// limited session does not have that key. Without the right code the policy counts as chosen by a limited
/// session. Items of the other policies need no code: only holders of the root key have the keys to seal
/// them.
///
/// The code names the item, its policy and the class's version, not the value. A limited session that stores
/// a new value carries the code over.
enum PolicyProof {
    static let length = 16

    /// The origin of an item's policy.
    enum Origin {
        /// A session with the root key chose it.
        case owner
        /// No session with the root key chose it.
        case limitedSession
        /// The keys that would tell are not held.
        case unknown
    }

    /// Returns the policy whose class, in the same set and version, leads to the key of the proofs of items
    /// of `policy`. Returns `nil` where items need none.
    static func gate(of policy: AccessPolicy) -> AccessPolicy? {
        switch policy {
        case .afterFirstUnlock: .whenUnlocked
        case .afterFirstUnlockThisDeviceOnly: .whenUnlockedThisDeviceOnly
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: nil
        }
    }

    /// Returns the key of the codes for after-first-unlock classes of the same set and version, from the
    /// secret key of a when-unlocked class.
    static func key(
        from secret: SymmetricKey, vault: VaultIdentifier
    ) throws(CryptoError) -> SymmetricKey {
        try Hash.derive(from: secret, label: "tokenvault 1 policy proof", parts: [vault.bytes])
    }

    /// Returns the code of an item that is sealed under `keys`; `nil` when `key` was wiped.
    static func code(of item: ItemIdentifier, under keys: ClassKeys, key: SymmetricKey) -> [UInt8]? {
        var writer = ByteWriter(reserving: 29)
        item.append(to: &writer)
        writer.append(keys.policy.number)
        writer.append(keys.version)
        writer.append(keys.setTag)
        return Hash.keyed(writer.bytes, key: key, length: length)
    }
}

extension KeyRing {
    /// Returns the key of the policy proofs of items that are sealed under `keys`; `nil` while locked or with
    /// a limited scope.
    private func proofKey(for keys: ClassKeys) -> SymmetricKey? {
        guard let gate = PolicyProof.gate(of: keys.policy),
            case .keys(let held) = access(
                policy: gate.number, setTag: keys.setTag, version: keys.version)
        else { return nil }
        return held.policyProof
    }

    /// Returns the origin of a stored item's policy.
    func policyOrigin(
        of stored: StoredMetadata, _ item: ItemIdentifier, under keys: ClassKeys
    ) -> PolicyProof.Origin {
        guard keys.policy.isReadableAfterFirstUnlock else { return .owner }
        // Every reader sees that there is no proof.
        guard let proof = stored.policyProof else { return .limitedSession }
        guard let key = proofKey(for: keys),
            let code = PolicyProof.code(of: item, under: keys, key: key)
        else {
            // With the root key, an unproved policy counts for nothing: that class's keys may be gone from
            // the keybag.
            return roots?.all == nil ? .unknown : .limitedSession
        }
        return constantTimeEqual(proof, code) ? .owner : .limitedSession
    }

    /// Returns the proof that this session chose the policy; `nil` where none is needed or this session
    /// cannot give one.
    func policyProof(of item: ItemIdentifier, under keys: ClassKeys) -> [UInt8]? {
        guard keys.policy.isReadableAfterFirstUnlock, let key = proofKey(for: keys) else { return nil }
        return PolicyProof.code(of: item, under: keys, key: key)
    }

    /// Returns the metadata of an item for its reader.
    func metadata(
        _ stored: StoredMetadata, of item: ItemIdentifier, under keys: ClassKeys
    ) -> TokenMetadata {
        var metadata = stored.metadata
        metadata.isPolicyFromLimitedSession =
            policyOrigin(of: stored, item, under: keys) == .limitedSession
        return metadata
    }
}
