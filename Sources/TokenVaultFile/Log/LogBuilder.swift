internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Writes a whole vault file from its beginning: for creation and for compaction.
struct LogBuilder {
    private let file: any DiskFile
    private let codec: FrameCodec
    private let tailBound: Int
    private var state: LogState
    private var buffer: [UInt8] = []
    private var bufferStart = VaultFormat.logStart
    private var records: [IndexRecord] = []

    /// Begins with both keybag copies and the genesis frame. Where more than `tailBound` frames follow, the
    /// file gets an index.
    init(
        file: any DiskFile, codec: FrameCodec, tailBound: Int, epoch: Epoch, baseSequence: UInt64,
        keybagCopy: [UInt8], keybag: KeybagRecord, ancestry: Ancestry
    ) throws(TokenStorageError) {
        self.file = file
        self.codec = codec
        self.tailBound = tailBound
        let identity = try onDisk { () throws(SystemFailure) in try file.attributes().identity }
        state = LogState(
            file: file, identity: identity, size: 0, tail: VaultFormat.logStart, trailer: [],
            chain: FrameCodec.chainStart, head: FrameCodec.chainStart, sequence: baseSequence,
            epoch: epoch, keybag: keybag,
            baseSequence: baseSequence)
        let noPointer = [UInt8](repeating: 0, count: IndexPointer.length)
        try onDisk { () throws(SystemFailure) in
            try file.write(keybagCopy + keybagCopy + noPointer, at: 0)
        }
        let genesis = GenesisRecord(epoch: epoch, baseSequence: baseSequence, keybag: keybag)
        try append(genesis.encoded(), as: .genesis)
        if !ancestry.isEmpty { try append(ancestry.encoded(), as: .ancestry) }
    }

    /// Writes a control record of the file's own group.
    private mutating func append(_ payload: [UInt8], as type: RecordType) throws(TokenStorageError) {
        let body = try codec.sealControl(payload, type: type, generation: state.sequence)
        try append(
            try codec.seal(
                FrameDraft(type: type, body: body), generation: state.sequence,
                groupStart: VaultFormat.logStart, previous: state.chain, endsCommit: true))
    }

    /// Copies a value of an item with its sealed contents and its generation, and the commit that its header
    /// names, or `storedBy`. Values of one item come in the order of their generations. Throws `corrupt` when
    /// the contents are not what their header says.
    mutating func copy(
        _ value: IndexRecord, storedBy: UInt64? = nil, from scanner: inout LogScanner,
        resealing: VaultLog.Resealing? = nil
    ) throws(TokenStorageError) {
        let (item, entry) = (value.item, value.entry)
        let storedBy = if let storedBy { storedBy } else { try scanner.storingCommit(of: entry) }
        let content = try scanner.contents(of: item, entry)
        if let resealing, var draft = try resealing(item, entry, content) {
            draft.storedBy = storedBy
            return try append(draft, generation: entry.generation, as: value.kind)
        }
        let header = FrameHeader(
            type: RecordType.item.rawValue, endsCommit: true, policy: entry.policy,
            keyVersion: entry.keyVersion, generation: entry.generation,
            groupStart: UInt64(VaultFormat.logStart), previous: state.chain, storedBy: storedBy, item: item,
            serviceTag: entry.serviceTag, setTag: entry.setTag,
            metadataLength: Int(entry.metadataLength), bodyLength: Int(entry.bodyLength),
            contentDigest: Digest(of: content), valueTag: entry.valueTag)
        try append(try codec.seal(header, content: content), as: value.kind)
    }

    /// Writes a record that was sealed for this file, as a commit with the given generation.
    mutating func append(
        _ draft: FrameDraft, generation: UInt64, as kind: IndexRecord.Kind = .newest
    ) throws(TokenStorageError) {
        try append(
            try codec.seal(
                draft, generation: generation, groupStart: VaultFormat.logStart, previous: state.chain,
                endsCommit: true), as: kind)
    }

    /// Writes the rest: an index if there are many items, a checkpoint, and the zeros that later frames go
    /// into. The checkpoint says that all before it is durable once the file has its name.
    mutating func finish() throws(TokenStorageError) -> LogState {
        let hasIndex = state.framesSinceIndex > tailBound && !hasTooManyClasses
        if hasIndex {
            try writeIndex()
        } else {
            for record in records { state.index.store(record.item, record.entry) }
        }
        try append(
            try codec.seal(
                FrameDraft(type: .checkpoint), generation: state.sequence, groupStart: state.tail,
                previous: state.chain, endsCommit: true))
        state.size = state.tail + VaultFormat.reserve + VaultFormat.headroom(for: state.tail)
        buffer += [UInt8](repeating: 0, count: state.size - state.tail)
        try flush()
        if hasIndex { try takeIndex() }
        state.isTailSettled = true
        state.isWalked = true
        state.isBeginningWhole = true
        return state
    }

    /// Whether no index can list the classes of keys that the items are sealed under.
    private var hasTooManyClasses: Bool {
        var (classes, last) = (Set<KeyRing.ClassName>(), KeyRing.ClassName?.none)
        for record in records {
            let name = KeyRing.ClassName(of: record.entry)
            guard name != last else { continue }
            last = name
            classes.insert(name)
            if classes.count > IndexSummary.mostClasses { return true }
        }
        return false
    }

    private mutating func writeIndex() throws(TokenStorageError) {
        try flush()
        // An item's newest value comes first, those before it in their order.
        records.sort { left, right in
            if left.item != right.item { return left.item < right.item }
            if left.isNewest != right.isNewest { return left.isNewest }
            return left.entry.offset < right.entry.offset
        }
        var writer = IndexWriter(after: state, codec: codec)
        for record in records { try writer.add(record) }
        records = []
        try writer.finish()
        state.newIndex = writer.frames.last
        state.tail = writer.end
        state.chain = writer.chain
        state.head = writer.chain
        state.trail.append(Ancestry.Commit(sequence: state.sequence, head: writer.chain))
        bufferStart = writer.end
    }

    /// Points readers to the index, and reads it as they do.
    private mutating func takeIndex() throws(TokenStorageError) {
        guard let last = state.newIndex,
            let block = try IndexReader(last, in: file, codec: codec, epoch: state.epoch)
        else { throw .file(.internalError) }
        let (file, pointer) = (file, IndexPointer(offset: last.offset).encoded())
        try onDisk { () throws(SystemFailure) in try file.write(pointer, at: VaultFormat.pointerStart) }
        state.newIndex = nil
        state.index = LogIndex(block: block)
        state.framesSinceIndex = 1
    }

    private mutating func append(
        _ sealed: FrameCodec.Sealed, as kind: IndexRecord.Kind = .newest
    ) throws(TokenStorageError) {
        let frame = ScannedFrame(offset: state.tail, header: sealed.header, chain: sealed.chain)
        buffer += sealed.bytes
        if sealed.header.isItem {
            records.append(
                IndexRecord(sealed.header.item, IndexEntry(sealed.header, at: frame.offset), kind))
        }
        if frame.header.type == RecordType.genesis.rawValue { state.frontChain = frame.chain }
        if frame.header.type == RecordType.ancestry.rawValue { state.takeAncestry(frame) }
        state.framesSinceIndex += 1
        if let commit = frame.commit { state.trail.append(commit) }
        state.chain = frame.chain
        state.head = frame.chain
        state.tail = frame.end
        state.trailer = Array(sealed.bytes.suffix(Frame.checksumLength))
        if buffer.count >= 1 << 20 { try flush() }
    }

    private mutating func flush() throws(TokenStorageError) {
        let (file, bytes, start) = (file, buffer, bufferStart)
        try onDisk { () throws(SystemFailure) in try file.write(bytes, at: start) }
        bufferStart += buffer.count
        buffer = []
    }
}

extension LogScanner {
    /// Returns the sealed metadata and body of a live item, checked against its header.
    mutating func contents(
        of item: ItemIdentifier, _ entry: IndexEntry
    ) throws(TokenStorageError) -> [UInt8] {
        guard try fill(entry.offset, entry.frameLength),
            let bytes = bytes(at: entry.offset, entry.frameLength),
            let header = try codec.header(in: bytes, at: 0), header.item == item,
            header.generation == entry.generation, header.frameLength == entry.frameLength,
            header.valueTag == entry.valueTag
        else { throw .damage(at: entry.offset, .frame) }
        let content = Array(bytes[Frame.contentOffset..<Frame.contentOffset + entry.contentLength])
        guard Digest(of: content) == header.contentDigest else {
            throw .damage(at: entry.offset, .value)
        }
        return content
    }
}
