internal import TokenVaultCore

/// The frames of one commit, made as its records come: the records of a whole import come in parts.
struct CommitFrames: ~Copyable {
    /// The length that a part may reach with the commits behind it.
    static let usualPart = 1 << 20

    /// The frames' bytes, one part behind the other.
    private(set) var parts: [[UInt8]] = []
    /// The length of the parts, in bytes.
    private(set) var length = 0
    /// The frames of each part.
    private(set) var frames: [[ScannedFrame]] = []
    /// The chain value behind the last frame.
    private(set) var chain: Digest
    /// The records, unless they fill the group: then no following commit can need them.
    private(set) var drafts: [[FrameDraft]] = []

    private let codec: FrameCodec
    private let generation: UInt64
    private let groupStart: Int
    private let offset: Int
    /// The newest record. The next record, or the end, decides whether it ends the commit.
    private var newest: FrameDraft?
    private var ends = FrameCodec.FrameEnds(for: 1)

    /// Begins a commit at `offset`, in a group that begins at `groupStart`.
    init(codec: FrameCodec, generation: UInt64, groupStart: Int, offset: Int, chain: Digest) {
        self.codec = codec
        self.generation = generation
        self.groupStart = groupStart
        self.offset = offset
        self.chain = chain
    }

    /// Adds records.
    mutating func append(_ more: [FrameDraft]) throws(TokenStorageError) {
        guard let last = more.last else { return }
        var part: [UInt8] = []
        part.reserveCapacity(more.reduce(newest?.frameLength ?? 0) { $0 + $1.frameLength })
        parts.append(part)
        var frames: [ScannedFrame] = []
        // The frame that ends the commit may be among them.
        frames.reserveCapacity(more.count + 1)
        self.frames.append(frames)
        if more.count > 1 { ends.expect(more.count) }
        if let newest { try append(newest, endsCommit: false) }
        for position in more.indices.dropLast() { try append(more[position], endsCommit: false) }
        newest = last
        if offset + length - groupStart < LogGroup.largest { drafts.append(more) } else { drafts = [] }
    }

    /// Ends the commit with the newest record. Without a record there are no frames.
    mutating func finish() throws(TokenStorageError) {
        guard let newest else { return }
        try append(newest, endsCommit: true)
        self.newest = nil
    }

    private mutating func append(_ draft: FrameDraft, endsCommit: Bool) throws(TokenStorageError) {
        let header = FrameHeader(
            draft, generation: generation, groupStart: groupStart, previous: chain, endsCommit: endsCommit)
        chain = try codec.append(
            header, content: draft.content, to: &parts[parts.count - 1], with: &ends)
        frames[frames.count - 1].append(ScannedFrame(offset: offset + length, header: header, chain: chain))
        length += header.frameLength
    }
}
