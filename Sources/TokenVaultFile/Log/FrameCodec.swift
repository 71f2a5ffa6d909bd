internal import TokenVaultCore
internal import TokenVaultCrypto

/// A record that has no place in the log yet.
struct FrameDraft: Sendable {
    var type: RecordType
    var policy: UInt8 = 0
    var keyVersion: UInt32 = 0
    var item: ItemIdentifier = .none
    var serviceTag: UInt64 = 0
    var setTag: UInt64 = 0
    /// The tag of the commit that stored the value before a merge; zero for none.
    var storedBy: UInt64 = 0
    /// The tag that an item's contents are sealed with; zero for other types.
    let valueTag: UInt64
    /// The sealed metadata, with the sealed body behind it.
    let content: [UInt8]
    /// The digest of the content.
    let digest: Digest
    private let metadataLength: Int

    init(
        type: RecordType, policy: UInt8 = 0, keyVersion: UInt32 = 0, item: ItemIdentifier = .none,
        serviceTag: UInt64 = 0, setTag: UInt64 = 0, metadata: [UInt8] = [], body: [UInt8] = []
    ) {
        self.init(
            type: type, policy: policy, keyVersion: keyVersion, item: item, serviceTag: serviceTag,
            setTag: setTag, content: metadata + body, metadataLength: metadata.count, valueTag: 0)
    }

    /// Creates a record whose metadata are the first `metadataLength` bytes of `content`.
    init(
        type: RecordType, policy: UInt8, keyVersion: UInt32, item: ItemIdentifier, serviceTag: UInt64,
        setTag: UInt64, content: [UInt8], metadataLength: Int, valueTag: UInt64
    ) {
        self.valueTag = valueTag
        self.type = type
        self.policy = policy
        self.keyVersion = keyVersion
        self.item = item
        self.serviceTag = serviceTag
        self.setTag = setTag
        self.content = content
        digest = Digest(of: content)
        self.metadataLength = metadataLength
    }

    /// The length of its frame.
    var frameLength: Int { Frame.overhead + content.count }
    /// The sealed metadata.
    var metadata: ArraySlice<UInt8> { content[..<metadataLength] }
    /// The sealed body.
    var body: ArraySlice<UInt8> { content[metadataLength...] }
}

/// Seals and opens frames with the log's keys.
struct FrameCodec: Sendable {
    let vault: VaultIdentifier
    let keys: LogKeys
    private let headerData: [UInt8]

    init(vault: VaultIdentifier, keys: LogKeys) {
        self.vault = vault
        self.keys = keys
        headerData = Array("tokenvault 1 frame header".utf8) + [0] + vault.bytes
    }

    /// A frame's bytes and the chain value behind it.
    struct Sealed {
        var header: FrameHeader
        var bytes: [UInt8]
        var chain: Digest
    }

    static let chainStart = Digest.zero

    /// Gives a draft its place. Throws `closed` when the log's keys are wiped.
    func seal(
        _ draft: FrameDraft, generation: UInt64, groupStart: Int, previous: Digest, endsCommit: Bool
    ) throws(TokenStorageError) -> Sealed {
        let header = FrameHeader(
            draft, generation: generation, groupStart: groupStart, previous: previous,
            endsCommit: endsCommit)
        return try seal(header, content: draft.content)
    }

    /// Seals a header in front of content that is sealed already.
    func seal(_ header: FrameHeader, content: [UInt8]) throws(TokenStorageError) -> Sealed {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(header.frameLength)
        var ends = FrameEnds(for: 1)
        let chain = try append(header, content: content, to: &bytes, with: &ends)
        return Sealed(header: header, bytes: bytes, chain: chain)
    }

    /// The bytes in front of a frame's content and behind it, made for one frame after the other in the same
    /// memory.
    struct FrameEnds: ~Copyable {
        fileprivate var bytes = [UInt8](repeating: 0, count: Frame.overhead)
        fileprivate var nonces: Nonces

        /// Prepares for about `frames` frames.
        init(for frames: Int) { nonces = Nonces(for: frames) }

        /// Prepares for about `frames` frames more.
        mutating func expect(_ frames: Int) { nonces.expect(frames) }
    }

    /// Appends the frame of a header and content that is sealed already; returns the chain value behind it.
    func append(
        _ header: FrameHeader, content: [UInt8], to bytes: inout [UInt8], with ends: inout FrameEnds
    ) throws(TokenStorageError) -> Digest {
        Frame.putPrefix(length: header.frameLength, into: &ends.bytes)
        header.put(into: &ends.bytes, at: Frame.prefixLength + AuthenticatedEncryption.front)
        let isSealed = AuthenticatedEncryption.seal(
            &ends.bytes, at: Frame.prefixLength..<Frame.contentOffset, key: keys.header,
            associatedData: headerData, nonces: &ends.nonces)
        guard isSealed else { throw .file(.closed) }
        let chain = try chain(after: ends.bytes)
        let checksum = Hash.pair(of: ends.bytes, in: 0..<Frame.contentOffset)
        header.contentDigest.putFirstHalf(into: &ends.bytes, at: Frame.contentOffset)
        ends.bytes.put(checksum.0, at: Frame.overhead - Frame.checksumLength)
        ends.bytes.put(checksum.1, at: Frame.overhead - Frame.checksumLength / 2)
        bytes += ends.bytes[..<Frame.contentOffset]
        bytes += content
        bytes += ends.bytes[Frame.contentOffset...]
        return chain
    }

    /// Returns the header of the frame at `offset` of `bytes`; `nil` when it does not authenticate.
    func header(in bytes: [UInt8], at offset: Int) throws(TokenStorageError) -> FrameHeader? {
        let start = offset + Frame.prefixLength
        switch AuthenticatedEncryption.openPublic(
            bytes, at: start..<start + Frame.sealedHeaderLength, key: keys.header,
            associatedData: headerData)
        {
        case .wiped: throw .file(.closed)
        case .forged: return nil
        case .plaintext(let plaintext): return try Self.header(plaintext, plaintext.count)
        }
    }

    /// Returns the same as ``header(in:at:)``, opened with the log's header key into `scratch`.
    func header(
        in bytes: [UInt8], at offset: Int, with key: borrowing KeyUse, _ scratch: inout Scratch
    ) throws(TokenStorageError) -> FrameHeader? {
        let start = offset + Frame.prefixLength
        let isAuthentic = scratch.open(
            bytes, at: start..<start + Frame.sealedHeaderLength, with: key, associatedData: headerData)
        return isAuthentic ? try Self.header(scratch.bytes, scratch.count) : nil
    }

    private static func header(_ plaintext: [UInt8], _ count: Int) throws(TokenStorageError) -> FrameHeader {
        guard let header = try? FrameHeader(decoding: plaintext, count: count) else {
            throw .file(.unsupportedFormat, .newerFormat(.frameHeader))
        }
        return header
    }

    /// Returns the chain value behind the frame at `offset` of `bytes`, which have at least its first
    /// ``Frame/contentOffset`` bytes.
    func chain(after bytes: [UInt8], at offset: Int = 0) throws(TokenStorageError) -> Digest {
        let head = offset..<offset + Frame.contentOffset
        guard let chain = Digest(of: bytes, in: head, key: keys.chain) else {
            throw .file(.closed)
        }
        return chain
    }

    /// Seals the body of a control record.
    func sealControl(
        _ payload: [UInt8], type: RecordType, generation: UInt64
    ) throws(TokenStorageError) -> [UInt8] {
        let padded = payload + [UInt8](repeating: 0, count: (8 - payload.count % 8) % 8)
        guard
            let sealed = AuthenticatedEncryption.seal(
                padded, key: keys.control, associatedData: controlData(type.rawValue, generation))
        else { throw .file(.closed) }
        return sealed
    }

    /// Opens the body of a control record; `nil` when it does not authenticate.
    func openControl(_ sealed: [UInt8], header: FrameHeader) throws(TokenStorageError) -> [UInt8]? {
        switch AuthenticatedEncryption.openPublic(
            sealed, at: 0..<sealed.count, key: keys.control,
            associatedData: controlData(header.type, header.generation))
        {
        case .wiped: throw .file(.closed)
        case .forged: return nil
        case .plaintext(let payload): return payload
        }
    }

    private func controlData(_ type: UInt8, _ generation: UInt64) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(Array("tokenvault 1 control record".utf8) + [0])
        writer.append(vault.bytes)
        writer.append(type)
        writer.append(generation)
        return writer.bytes
    }

    /// Returns the name of an item in the log.
    func item(service: String, key: TokenKey) throws(TokenStorageError) -> ItemIdentifier {
        var writer = ByteWriter(reserving: 64)
        writer.append(text: service)
        writer.append(text: key.name)
        guard let digest = Hash.pair(of: writer.bytes, key: keys.lookup) else { throw .file(.closed) }
        // The digest's bytes are read as big-endian numbers.
        return ItemIdentifier(high: digest.0.byteSwapped, low: digest.1.byteSwapped)
    }

    /// Returns the tag that the frames of a service carry.
    func tag(ofService service: String) throws(TokenStorageError) -> UInt64 {
        guard let digest = Hash.pair(of: Array(service.utf8), key: keys.service) else {
            throw .file(.closed)
        }
        return digest.0.byteSwapped
    }
}

extension FrameHeader {
    /// Creates the header of a draft that has its place.
    init(
        _ draft: FrameDraft, generation: UInt64, groupStart: Int, previous: Digest, endsCommit: Bool
    ) {
        self.init(
            type: draft.type.rawValue, endsCommit: endsCommit, policy: draft.policy,
            keyVersion: draft.keyVersion, generation: generation, groupStart: UInt64(groupStart),
            previous: previous, storedBy: draft.storedBy, item: draft.item, serviceTag: draft.serviceTag,
            setTag: draft.setTag,
            metadataLength: draft.metadata.count, bodyLength: draft.body.count,
            contentDigest: draft.digest, valueTag: draft.valueTag)
    }
}
