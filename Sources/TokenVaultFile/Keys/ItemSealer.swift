internal import TokenVaultCore
internal import TokenVaultCrypto

/// Seals and opens items under their class's keys, bound to vault, item, class, generation and the value's tag. They are
/// never bound to a place in the file: compaction moves sealed bytes.
enum ItemSealer {
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
    static func item(
        _ item: ItemIdentifier, metadata: [UInt8], secret: Secret, keys: ClassKeys, serviceTag: UInt64,
        generation: UInt64, with supplies: inout Supplies
    ) throws(TokenStorageError) -> FrameDraft {
        if supplies.data?.keys !== keys {
            supplies.data = (keys, keys.itemMetadata, keys.itemBody)
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
    static func deletion(
        _ item: ItemIdentifier, metadata: [UInt8], keys: ClassKeys, serviceTag: UInt64,
        generation: UInt64
    ) throws(TokenStorageError) -> FrameDraft {
        FrameDraft(
            type: .deletion, policy: keys.policy.number, keyVersion: keys.version, item: item,
            serviceTag: serviceTag, setTag: keys.setTag,
            metadata: try sealed(
                AuthenticatedEncryption.seal(
                    metadata, key: keys.metadata,
                    associatedData: keys.deletionMetadata.bytes(item, generation, valueTag: 0))))
    }

    /// Opens an item's sealed metadata; `nil` when they are not what was sealed. Throws `locked` when the
    /// keys were wiped meanwhile.
    static func openMetadata(
        _ bytes: [UInt8], in range: Range<Int>, of item: ItemIdentifier, generation: UInt64,
        valueTag: UInt64, keys: ClassKeys, isDeletion: Bool = false
    ) throws(TokenStorageError) -> StoredMetadata? {
        let data = isDeletion ? keys.deletionMetadata : keys.itemMetadata
        switch AuthenticatedEncryption.open(
            bytes, at: range, key: keys.metadata,
            associatedData: data.bytes(item, generation, valueTag: valueTag))
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
    static func openBody(
        _ bytes: [UInt8], in range: Range<Int>, of item: ItemIdentifier, generation: UInt64,
        valueTag: UInt64, keys: ClassKeys
    ) throws(TokenStorageError) -> Secret? {
        switch AuthenticatedEncryption.open(
            bytes, at: range, key: keys.secret,
            associatedData: keys.itemBody.bytes(item, generation, valueTag: valueTag))
        {
        case .wiped: throw .file(.locked)
        case .forged: return nil
        case .plaintext(let plaintext): return try? ItemCoding.decodeBody(plaintext)
        }
    }

    private static func sealed(_ bytes: [UInt8]?) throws(TokenStorageError) -> [UInt8] {
        guard let bytes else { throw .file(.locked) }
        return bytes
    }
}
