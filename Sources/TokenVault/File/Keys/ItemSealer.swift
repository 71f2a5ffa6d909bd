internal import TokenVaultCrypto

/// Seals and opens items under their class's keys, bound to vault, item, class and generation, and never
/// to a place in the file: compaction moves sealed bytes.
struct ItemSealer {
    let vault: VaultIdentifier

    /// The record of an item's value.
    func item(
        _ item: ItemIdentifier, metadata: [UInt8], secret: Secret, keys: ClassKeys, serviceTag: UInt64,
        generation: UInt64
    ) throws(TokenStorageError) -> FrameDraft {
        let name = Name(item, keys, generation)
        return FrameDraft(
            type: .item, policy: keys.policy.number, keyVersion: keys.version, item: item,
            serviceTag: serviceTag, setTag: keys.setTag,
            metadata: try sealed(
                AuthenticatedEncryption.seal(
                    metadata, key: keys.metadata, associatedData: data("item metadata", name))),
            body: try sealed(
                AuthenticatedEncryption.seal(
                    ItemCoding.body(secret), key: keys.secret, associatedData: data("item body", name))))
    }

    /// The record that an item is gone, with its names for those who may know them.
    func deletion(
        _ item: ItemIdentifier, metadata: [UInt8], keys: ClassKeys, serviceTag: UInt64,
        generation: UInt64
    ) throws(TokenStorageError) -> FrameDraft {
        FrameDraft(
            type: .deletion, policy: keys.policy.number, keyVersion: keys.version, item: item,
            serviceTag: serviceTag, setTag: keys.setTag,
            metadata: try sealed(
                AuthenticatedEncryption.seal(
                    metadata, key: keys.metadata,
                    associatedData: data("deletion metadata", Name(item, keys, generation)))))
    }

    /// Opens an item's sealed metadata; `nil` when it is not what was sealed. Throws `locked` when the
    /// keys were wiped meanwhile.
    func openMetadata(
        _ bytes: [UInt8], in range: Range<Int>, of item: ItemIdentifier, generation: UInt64,
        keys: ClassKeys, isDeletion: Bool = false
    ) throws(TokenStorageError) -> TokenMetadata? {
        let purpose = isDeletion ? "deletion metadata" : "item metadata"
        switch AuthenticatedEncryption.open(
            bytes, at: range, key: keys.metadata,
            associatedData: data(purpose, Name(item, keys, generation)))
        {
        case .wiped: throw .file(.locked)
        case .forged: return nil
        case .plaintext(let plaintext):
            return try? ItemCoding.decodeMetadata(
                plaintext.array(), policy: keys.policy, generation: generation)
        }
    }

    /// Opens an item's sealed body; `nil` when it is not what was sealed. Throws `locked` when the keys
    /// were wiped meanwhile.
    func openBody(
        _ bytes: [UInt8], in range: Range<Int>, of item: ItemIdentifier, generation: UInt64,
        keys: ClassKeys
    ) throws(TokenStorageError) -> Secret? {
        switch AuthenticatedEncryption.open(
            bytes, at: range, key: keys.secret,
            associatedData: data("item body", Name(item, keys, generation)))
        {
        case .wiped: throw .file(.locked)
        case .forged: return nil
        case .plaintext(let plaintext): return try? ItemCoding.decodeBody(plaintext)
        }
    }

    private struct Name {
        let item: ItemIdentifier
        let keys: ClassKeys
        let generation: UInt64

        init(_ item: ItemIdentifier, _ keys: ClassKeys, _ generation: UInt64) {
            self.item = item
            self.keys = keys
            self.generation = generation
        }
    }

    private func data(_ purpose: String, _ name: Name) -> [UInt8] {
        var writer = ByteWriter(reserving: 96)
        writer.append(Array("tokenvault 1 \(purpose)".utf8) + [0])
        writer.append(vault.bytes)
        name.item.append(to: &writer)
        writer.append(name.keys.policy.number)
        writer.append(name.keys.version)
        writer.append(name.keys.setTag)
        writer.append(name.generation)
        return writer.bytes
    }

    private func sealed(_ bytes: [UInt8]?) throws(TokenStorageError) -> [UInt8] {
        guard let bytes else { throw .file(.locked) }
        return bytes
    }
}
