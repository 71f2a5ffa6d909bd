internal import TokenVaultCore
internal import TokenVaultCrypto

/// Opens the contents of items' records with the keys of a ring, to check whether they open.
struct ContentChecker: ContentChecking, ~Copyable {
    private let ring: KeyRing
    /// The class of the last checked item.
    private var open: OpenClass?

    init(ring: KeyRing) { self.ring = ring }

    mutating func check(
        _ bytes: [UInt8], in content: Range<Int>, of header: FrameHeader, _ scratch: inout Scratch
    ) throws(TokenStorageError) -> ContentFinding {
        // A deletion by a session that could not read the item carries no names.
        if content.isEmpty { return .whole }
        if open?.isOf(header) != true {
            guard
                case .keys(let keys) = ring.access(
                    policy: header.policy, setTag: header.setTag, version: header.keyVersion)
            else { return .notReadable }
            open = OpenClass(keys)
        }
        switch open?.isWhole(bytes, content, header, &scratch) {
        case true?: return .whole
        case false?: return .damaged
        case nil: return .notReadable
        }
    }
}

/// The keys of a class in use, and the data that its seals are bound to.
private struct OpenClass: ~Copyable {
    private let policy: UInt8
    private let keyVersion: UInt32
    private let setTag: UInt64
    private let metadata: KeyUse
    private let secret: KeyUse
    private var itemMetadata: SealData
    private var itemBody: SealData
    private var deletionMetadata: SealData

    /// Returns `nil` when the keys were wiped meanwhile.
    init?(_ keys: ClassKeys) {
        guard let metadata = keys.metadata.use(), let secret = keys.secret.use() else { return nil }
        self.metadata = metadata
        self.secret = secret
        policy = keys.policy.number
        keyVersion = keys.version
        setTag = keys.setTag
        itemMetadata = keys.itemMetadata
        itemBody = keys.itemBody
        deletionMetadata = keys.deletionMetadata
    }

    func isOf(_ header: FrameHeader) -> Bool {
        header.policy == policy && header.keyVersion == keyVersion && header.setTag == setTag
    }

    /// Returns whether the sealed contents of an item's record, or of a deletion's, open and are valid.
    mutating func isWhole(
        _ bytes: [UInt8], _ content: Range<Int>, _ header: FrameHeader, _ scratch: inout Scratch
    ) -> Bool {
        let split = content.lowerBound + header.metadataLength
        guard split <= content.upperBound else { return false }
        let names = content.lowerBound..<split
        if header.type == RecordType.deletion.rawValue {
            deletionMetadata.name(header.item, header.generation, header.valueTag)
            return scratch.open(bytes, at: names, with: metadata, associatedData: deletionMetadata.bytes)
                && ItemCoding.isMetadata(scratch.bytes, count: scratch.count)
        }
        itemMetadata.name(header.item, header.generation, header.valueTag)
        itemBody.name(header.item, header.generation, header.valueTag)
        return scratch.open(bytes, at: names, with: metadata, associatedData: itemMetadata.bytes)
            && ItemCoding.isMetadata(scratch.bytes, count: scratch.count)
            && scratch.open(
                bytes, at: split..<content.upperBound, with: secret, associatedData: itemBody.bytes)
            && scratch.isPrefixed
    }
}
