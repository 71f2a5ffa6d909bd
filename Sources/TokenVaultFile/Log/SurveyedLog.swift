internal import TokenVaultCore

/// Every frame of a log, and the newest frame of each item.
///
/// Frames stay in the chunks they were surveyed in, and are found by their chunk's number and their own in
/// it.
struct SurveyedLog: Sendable {
    private var chunks: [[SurveyedFrame]] = []
    private var newest: NewestFrames
    /// The frames with faults.
    private(set) var faulty: [SurveyedFrame] = []
    /// The frames that are no items and no deletions.
    private(set) var controls: [SurveyedFrame] = []
    /// The number of frames.
    private(set) var count = 0
    /// The number of items that were checked only by digest.
    private(set) var checkedByDigestOnly = 0
    /// The newest commit.
    private(set) var sequence: UInt64 = 0
    /// The place of the frame behind which the chain has the wanted value.
    private(set) var head: Int?

    /// Creates a log of about `items` items.
    init(expecting items: Int) { newest = NewestFrames(expecting: items) }

    /// The length of a small token's frame.
    static let smallItem = 640

    /// The most chunks that can be told apart.
    static let mostChunks = FramePlace.mostChunks

    /// The number of items.
    var items: Int { newest.items }
    var last: SurveyedFrame? { chunks.last?.last }

    mutating func append(_ chunk: SurveyedChunk) {
        guard !chunk.frames.isEmpty else { return }
        head = head ?? chunk.head
        append(chunk.frames)
    }

    private mutating func append(_ frames: [SurveyedFrame]) {
        let number = chunks.count
        // The copy leaves out the spare room.
        var kept: [SurveyedFrame] = []
        kept.reserveCapacity(frames.count)
        kept += frames
        chunks.append(kept)
        count += frames.count
        for (index, frame) in frames.enumerated() {
            if frame.isItem || frame.isDeletion {
                newest.note(frame, at: FramePlace(chunk: number, index: index), in: chunks)
            } else {
                controls.append(frame)
            }
            if !frame.faults.isEmpty { note(frame) }
            sequence = max(sequence, frame.entry.generation)
        }
    }

    private mutating func note(_ frame: SurveyedFrame) {
        if frame.faults.contains(.notReadable) { checkedByDigestOnly += 1 }
        if frame.faults != .notReadable { faulty.append(frame) }
    }

    /// Forgets the frames from `offset` on.
    mutating func cut(at offset: Int) {
        guard let last, last.offset >= offset else { return }
        let kept = chunks.prefix { $0.first.map { $0.offset < offset } ?? true }
        var shorter = SurveyedLog(expecting: min(items, offset / Self.smallItem))
        for chunk in kept { shorter.append(chunk.filter { $0.offset < offset }) }
        shorter.head = head.flatMap { $0 < offset ? $0 : nil }
        self = shorter
    }

    /// Runs `body` for every frame, the last first, until it returns false.
    func forEachReversed(_ body: (SurveyedFrame) -> Bool) {
        for chunk in chunks.reversed() {
            for frame in chunk.reversed() where !body(frame) { return }
        }
    }

    /// Returns the newest value of `item`.
    func entry(of item: ItemIdentifier) -> IndexEntry? {
        guard let place = newest.place(of: item, in: chunks) else { return nil }
        let frame = chunks[place.chunk][place.index]
        return frame.isItem ? frame.entry : nil
    }

    /// Returns the places of the last deletions of those of `items` that were deleted.
    func lastDeletions(of items: Set<ItemIdentifier>) -> [ItemIdentifier: Int] {
        var deletions: [ItemIdentifier: Int] = [:]
        guard !items.isEmpty else { return deletions }
        for chunk in chunks {
            for frame in chunk where frame.isDeletion && items.contains(frame.item) {
                deletions[frame.item] = frame.offset
            }
        }
        return deletions
    }

    /// Returns every item with its newest entry, in the order of their places in the file.
    func itemsByOffset() -> [(ItemIdentifier, IndexEntry)] {
        var found: [(ItemIdentifier, IndexEntry)] = []
        found.reserveCapacity(items)
        for chunk in chunks {
            for frame in chunk where frame.isItem && entry(of: frame.item)?.offset == frame.offset {
                found.append((frame.item, frame.entry))
            }
        }
        return found
    }
}
