internal import TokenVaultCore
internal import TokenVaultCrypto

/// Seals and opens items under their class's keys, bound to vault, item, class, generation and the value's tag. They are
/// never bound to a place in the file: compaction moves sealed bytes.
struct ItemSealer {
    let vault: VaultIdentifier

    /// The supplies for seals of items that are made one after the other.
    struct Supplies: ~Copyable {
        fileprivate var nonces: Nonces
        /// The seal data of the class that was sealed under last.
        fileprivate var data: (keys: ClassKeys, metadata: SealData, body: SealData)?

        /// Creates supplies for about `items` items.
        init(for items: Int) { nonces = Nonces(for: 3 * items) }
    }

    /// Returns the record of an item's value. Both seals are made in place: the secret is nowhere else
    /// meanwhile.
    func item(
        _ item: ItemIdentifier, metadata: [UInt8], secret: Secret, keys: ClassKeys, serviceTag: UInt64,
        generation: UInt64, with supplies: inout Supplies
    ) throws(TokenStorageError) -> FrameDraft {
        if supplies.data?.keys !== keys {
            supplies.data = (keys, itemMetadata(keys), itemBody(keys))
        }
        let valueTag = supplies.nonces.number()
        supplies.data?.metadata.name(item, generation, valueTag)
        supplies.data?.body.name(item, generation, valueTag)
        let split = metadata.count + AuthenticatedEncryption.overhead
        let count = split + ItemCoding.bodyLength(of: secret) + AuthenticatedEncryption.overhead
        var content = [UInt8](repeating: 0, count: count)
        let front = AuthenticatedEncryption.front
        content.replaceSubrange(front..<front + metadata.count, with: metadata)
        guard let data = supplies.data,
            AuthenticatedEncryption.seal(
                &content, at: 0..<split, key: keys.metadata, associatedData: data.metadata.bytes,
                nonces: &supplies.nonces),
            AuthenticatedEncryption.seal(
                prefixingLengthOf: secret.bytes, into: &content, at: split..<count, key: keys.secret,
                associatedData: data.body.bytes, nonces: &supplies.nonces)
        else { throw .file(.locked) }
        return FrameDraft(
            type: .item, policy: keys.policy.number, keyVersion: keys.version, item: item,
            serviceTag: serviceTag, setTag: keys.setTag, content: content, metadataLength: split,
            valueTag: valueTag)
    }

    /// Returns the record of an item's deletion, with its names for readers that hold the key.
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
                    associatedData: data(Purpose.deletionMetadata, Name(item, keys, generation, valueTag: 0)))
            ))
    }

    /// Opens an item's sealed metadata; `nil` when they are not what was sealed. Throws `locked` when the
    /// keys were wiped meanwhile.
    func openMetadata(
        _ bytes: [UInt8], in range: Range<Int>, of item: ItemIdentifier, generation: UInt64,
        valueTag: UInt64, keys: ClassKeys, isDeletion: Bool = false
    ) throws(TokenStorageError) -> StoredMetadata? {
        let purpose = isDeletion ? Purpose.deletionMetadata : Purpose.itemMetadata
        switch AuthenticatedEncryption.open(
            bytes, at: range, key: keys.metadata,
            associatedData: data(purpose, Name(item, keys, generation, valueTag: valueTag)))
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
        valueTag: UInt64, keys: ClassKeys
    ) throws(TokenStorageError) -> Secret? {
        switch AuthenticatedEncryption.open(
            bytes, at: range, key: keys.secret,
            associatedData: data(Purpose.itemBody, Name(item, keys, generation, valueTag: valueTag)))
        {
        case .wiped: throw .file(.locked)
        case .forged: return nil
        case .plaintext(let plaintext): return try? ItemCoding.decodeBody(plaintext)
        }
    }

    /// The data that the seals of one class's items are bound to, reused for one item after the other.
    struct SealData {
        private(set) var bytes: [UInt8]
        private let place: Int

        fileprivate init(_ purpose: [UInt8], _ vault: VaultIdentifier, _ keys: ClassKeys) {
            var writer = ByteWriter(reserving: 96)
            writer.append(purpose)
            writer.append(vault.bytes)
            place = writer.bytes.count
            ItemIdentifier.none.append(to: &writer)
            writer.append(keys.policy.number)
            writer.append(keys.version)
            writer.append(keys.setTag)
            writer.append(UInt64(0))
            writer.append(UInt64(0))
            bytes = writer.bytes
        }

        /// Sets the item, its generation and the value's tag.
        mutating func name(_ item: ItemIdentifier, _ generation: UInt64, _ valueTag: UInt64) {
            bytes.put(item.high, at: place)
            bytes.put(item.low, at: place + 8)
            bytes.put(generation, at: bytes.count - 16)
            bytes.put(valueTag, at: bytes.count - 8)
        }
    }

    func itemMetadata(_ keys: ClassKeys) -> SealData { SealData(Purpose.itemMetadata, vault, keys) }
    func itemBody(_ keys: ClassKeys) -> SealData { SealData(Purpose.itemBody, vault, keys) }
    func deletionMetadata(_ keys: ClassKeys) -> SealData { SealData(Purpose.deletionMetadata, vault, keys) }

    /// The purpose of a seal, which begins the associated data.
    private enum Purpose {
        static let itemMetadata = Array("tokenvault 1 item metadata".utf8) + [0]
        static let itemBody = Array("tokenvault 1 item body".utf8) + [0]
        static let deletionMetadata = Array("tokenvault 1 deletion metadata".utf8) + [0]
    }

    private struct Name {
        let item: ItemIdentifier
        let keys: ClassKeys
        let generation: UInt64
        let valueTag: UInt64

        init(_ item: ItemIdentifier, _ keys: ClassKeys, _ generation: UInt64, valueTag: UInt64) {
            self.valueTag = valueTag
            self.item = item
            self.keys = keys
            self.generation = generation
        }
    }

    private func data(_ purpose: [UInt8], _ name: Name) -> [UInt8] {
        var data = SealData(purpose, vault, name.keys)
        data.name(name.item, name.generation, name.valueTag)
        return data.bytes
    }

    private func sealed(_ bytes: [UInt8]?) throws(TokenStorageError) -> [UInt8] {
        guard let bytes else { throw .file(.locked) }
        return bytes
    }
}
