internal import TokenVaultCrypto

/// A record before it has its place in the log.
struct FrameDraft: Sendable {
    var type: RecordType
    var policy: UInt8 = 0
    var keyVersion: UInt32 = 0
    var item: ItemIdentifier = .none
    var serviceTag: UInt64 = 0
    var setTag: UInt64 = 0
    /// The sealed metadata, and behind it the sealed body.
    let content: [UInt8]
    /// Of the content.
    let digest: Digest
    private let metadataLength: Int

    init(
        type: RecordType, policy: UInt8 = 0, keyVersion: UInt32 = 0, item: ItemIdentifier = .none,
        serviceTag: UInt64 = 0, setTag: UInt64 = 0, metadata: [UInt8] = [], body: [UInt8] = []
    ) {
        self.type = type
        self.policy = policy
        self.keyVersion = keyVersion
        self.item = item
        self.serviceTag = serviceTag
        self.setTag = setTag
        content = metadata + body
        digest = Digest(of: content)
        metadataLength = metadata.count
    }

    /// Sealed.
    var metadata: ArraySlice<UInt8> { content[..<metadataLength] }
    /// Sealed.
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
            type: draft.type.rawValue, endsCommit: endsCommit, policy: draft.policy,
            keyVersion: draft.keyVersion, generation: generation, groupStart: UInt64(groupStart),
            previous: previous, item: draft.item, serviceTag: draft.serviceTag, setTag: draft.setTag,
            metadataLength: draft.metadata.count, bodyLength: draft.body.count,
            contentDigest: draft.digest)
        return try seal(header, content: draft.content)
    }

    /// Seals a header in front of content that is sealed already.
    func seal(_ header: FrameHeader, content: [UInt8]) throws(TokenStorageError) -> Sealed {
        guard
            let sealedHeader = AuthenticatedEncryption.seal(
                header.encoded(), key: keys.header, associatedData: headerData)
        else { throw .file(.closed) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(header.frameLength)
        bytes += Frame.prefix(length: header.frameLength)
        bytes += sealedHeader
        let chain = try chain(after: bytes)
        let checksum = Hash.digest(bytes, length: Frame.checksumLength)
        bytes += content
        bytes += header.contentDigest.firstHalf
        bytes += checksum
        return Sealed(header: header, bytes: bytes, chain: chain)
    }

    /// The header of the frame at `offset` of `bytes`; `nil` when it does not authenticate.
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

    /// As ``header(in:at:)``, opened with the log's header key into `scratch`.
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
            throw .file(.unsupportedFormat, underlying: "an unknown frame header")
        }
        return header
    }

    /// The chain value behind the frame at `offset` of `bytes`, of which the first ``Frame/contentOffset`` bytes
    /// are there.
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

    /// The name of an item in the log.
    func item(service: String, key: TokenKey) throws(TokenStorageError) -> ItemIdentifier {
        var writer = ByteWriter(reserving: 64)
        writer.append(text: service)
        writer.append(text: key.name)
        guard let digest = Hash.keyed(writer.bytes, key: keys.lookup, length: 16) else {
            throw .file(.closed)
        }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for index in 0..<8 {
            high = high << 8 | UInt64(digest[index])
            low = low << 8 | UInt64(digest[8 + index])
        }
        return ItemIdentifier(high: high, low: low)
    }

    /// The tag that the frames of a service carry.
    func tag(ofService service: String) throws(TokenStorageError) -> UInt64 {
        guard let digest = Hash.keyed(Array(service.utf8), key: keys.service, length: 16) else {
            throw .file(.closed)
        }
        return digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
