internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Writes an index block as one commit: one frame of pages after the other, and the summary behind them.
/// Memory holds one frame at a time.
struct IndexWriter: ~Copyable {
    private let file: any DiskFile
    private let codec: FrameCodec
    private let epoch: Epoch
    private var summary: IndexSummary
    /// The pages of the next frame. The last one may still be written to; the others are sealed.
    private var pages: [UInt8] = []
    private var recordsOfPage = 0
    private var nonces: Nonces

    /// The written frames.
    private(set) var frames: [ScannedFrame] = []
    /// The offset of the next frame.
    private(set) var end: Int
    private(set) var chain: Digest
    /// The last 16 bytes before `end`.
    private(set) var trailer: [UInt8] = []

    /// Begins an index of what `state` holds, behind it.
    init(after state: LogState, codec: FrameCodec) {
        file = state.file
        self.codec = codec
        epoch = state.epoch
        end = state.tail
        chain = state.chain
        nonces = Nonces(for: IndexFormat.pages(for: state.index.mostRecords))
        summary = IndexSummary(
            identifier: Random.bytes(IndexSummary.identifierLength), start: state.tail,
            sequence: state.sequence, keybag: state.keybag)
    }

    /// Adds a record. They come in the order of items, an item's newest first. Throws `corrupt` for more classes of keys
    /// than readers accept: a holder of the log key may have made the items.
    mutating func add(_ record: IndexRecord) throws(TokenStorageError) {
        if recordsOfPage == 0 {
            summary.fences.append(record.item.high)
            pages.append(contentsOf: repeatElement(0, count: IndexFormat.pageLength))
        }
        let page = pages.count - IndexFormat.pageLength + AuthenticatedEncryption.front
        record.put(into: &pages, at: page + recordsOfPage * IndexRecord.length)
        recordsOfPage += 1
        summary.records += 1
        if record.isNewest { summary.count(record.entry) }
        guard summary.classes.count <= IndexSummary.mostClasses else {
            throw .file(.corrupt, .damaged(.numbers))
        }
        if recordsOfPage == IndexFormat.recordsPerPage { try endPage() }
    }

    /// Writes the remaining pages, and the summary.
    mutating func finish() throws(TokenStorageError) {
        if recordsOfPage > 0 { try endPage() }
        if !pages.isEmpty { try endFrame() }
        let body = try codec.sealSummary(summary, at: end, epoch: epoch)
        try write(FrameDraft(type: .index, body: body), endsCommit: true)
    }

    private mutating func endPage() throws(TokenStorageError) {
        let page = pages.count - IndexFormat.pageLength..<pages.count
        try codec.sealPage(
            &pages, at: page, number: summary.pages - 1, of: summary.identifier, nonces: &nonces)
        recordsOfPage = 0
        if summary.pages.isMultiple(of: IndexFormat.pagesPerFrame) { try endFrame() }
    }

    private mutating func endFrame() throws(TokenStorageError) {
        try write(FrameDraft(type: .indexPages, body: pages), endsCommit: false)
        pages.removeAll(keepingCapacity: true)
    }

    private mutating func write(_ draft: FrameDraft, endsCommit: Bool) throws(TokenStorageError) {
        let sealed = try codec.seal(
            draft, generation: summary.sequence, groupStart: summary.start, previous: chain,
            endsCommit: endsCommit)
        let (file, place) = (file, end)
        try onDisk { () throws(SystemFailure) in try file.write(sealed.bytes, at: place) }
        frames.append(ScannedFrame(offset: place, header: sealed.header, chain: sealed.chain))
        chain = sealed.chain
        end = place + sealed.bytes.count
        trailer = Array(sealed.bytes.suffix(Frame.checksumLength))
    }
}
