internal import TokenVaultCrypto

// After a key rotation: items sealed under older class keys are sealed under the newest.
extension VaultSession {
    /// Returns a function that seals an item again for compaction, under its own generation. The function
    /// returns `nil` when the item's keys are the newest or not held.
    func resealing() -> VaultLog.Resealing {
        { [self] (item, entry, content) throws(TokenStorageError) in
            guard
                case .keys(let old) = ring.access(
                    policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion),
                case .keys(let new) = ring.accessForWriting(old.policy), new.setTag == old.setTag,
                new.version > old.version
            else { return nil }
            let split = Int(entry.metadataLength)
            guard
                let stored = try sealer.openMetadata(
                    content, in: 0..<split, of: item, generation: entry.generation, keys: old),
                let secret = try sealer.openBody(
                    content, in: split..<content.count, of: item, generation: entry.generation, keys: old)
            else { throw .damage(at: entry.offset, .item) }
            let origin = ring.policyOrigin(of: stored, item, under: old)
            // Without the root key the proof cannot be renewed: the next session with the root key seals the
            // item.
            if origin == .unknown { return nil }
            var supplies = ItemSealer.Supplies(for: 1)
            return try sealer.item(
                item,
                metadata: ItemCoding.metadata(
                    StoredMetadata(
                        metadata: stored.metadata,
                        policyProof: origin == .owner ? ring.policyProof(of: item, under: new) : nil)),
                secret: secret, keys: new, serviceTag: entry.serviceTag, generation: entry.generation,
                with: &supplies)
        }
    }
}
