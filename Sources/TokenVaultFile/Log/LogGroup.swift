internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// Commits that are written together.
struct LogGroup {
    /// The length at which a group is written.
    static let largest = 8 << 20

    let start: Int
    /// The parts to write, one behind the other; each ends with a frame.
    private(set) var parts: [[UInt8]] = []
    /// The length of the parts, in bytes.
    private(set) var length = 0
    /// The frames to write, in any number of lists.
    private(set) var frames: [[ScannedFrame]] = []
    private(set) var deleted: [ItemIdentifier] = []
    /// Whether the group may go into the reserve: it frees space, or changes the ways to open the vault.
    private(set) var mayUseReserve = true

    private let log: VaultLog
    private let file: any DiskFile
    /// The changes that the commits made so far, for later commits in the same group; see ``list()``.
    private var pending: [ItemIdentifier: LogView.Pending] = [:]
    /// The records that are not in `pending` yet.
    private var unlisted: [(drafts: [FrameDraft], generation: UInt64)] = []
    private var chain: Digest
    private var sequence: UInt64

    /// Creates a group that follows what `log` holds. The caller holds the lock.
    init(after log: VaultLog) {
        self.log = log
        (start, file, chain, sequence) = log.state.withLock { ($0.tail, $0.file, $0.chain, $0.sequence) }
    }

    var isEmpty: Bool { frames.isEmpty }
    /// Whether the group is full and rejects other requests.
    var isFull: Bool { length >= Self.largest }
    /// The generation that the next commit gets.
    var nextSequence: UInt64 { sequence + 1 }
    var end: Int { start + length }
    var trailer: [UInt8] { Array((parts.last ?? []).suffix(Frame.checksumLength)) }

    /// Adds the commit of `request`; returns its generation, or `nil` when it changes nothing.
    mutating func add(_ request: WriteRequest) throws(TokenStorageError) -> Generation? {
        var commit = try newCommit()
        list()
        let view = LogView(generation: sequence + 1, log: log, file: file, pending: pending)
        try request.prepare(view) { (drafts) throws(TokenStorageError) in try commit.append(drafts) }
        return try add(commit)
    }

    /// Adds a commit of these records.
    mutating func add(_ drafts: [FrameDraft]) throws(TokenStorageError) -> Generation? {
        var commit = try newCommit()
        try commit.append(drafts)
        return try add(commit)
    }

    /// Throws `corrupt` where the numbers are used up: no reader accepts a larger one.
    private func newCommit() throws(TokenStorageError) -> CommitFrames {
        guard sequence < VaultFormat.largestSequence - 1 else { throw .file(.corrupt, .damaged(.numbers)) }
        return CommitFrames(
            codec: log.codec, generation: sequence + 1, groupStart: start, offset: end, chain: chain)
    }

    private mutating func add(_ commit: consuming CommitFrames) throws(TokenStorageError) -> Generation? {
        try commit.finish()
        guard !commit.frames.isEmpty else { return nil }
        for header in commit.frames.joined().lazy.map(\.header) {
            switch RecordType(rawValue: header.type) {
            case .item:
                if !deleted.isEmpty { deleted.removeAll { $0 == header.item } }
                mayUseReserve = false
            case .deletion: deleted.append(header.item)
            case .genesis, .keybag, .checkpoint, .superseded, .ancestry, .indexPages, .index, nil: break
            }
        }
        sequence += 1
        for drafts in commit.drafts { unlisted.append((drafts, sequence)) }
        if let last = parts.indices.last, parts[last].count + commit.length <= CommitFrames.usualPart {
            for part in commit.parts { parts[last] += part }
        } else {
            parts += commit.parts
        }
        length += commit.length
        frames += commit.frames
        chain = commit.chain
        return Generation(rawValue: sequence)
    }

    /// Lists the changes that the commits made so far. Only another commit needs them, and most groups have
    /// one.
    private mutating func list() {
        for (drafts, generation) in unlisted {
            pending.reserveCapacity(pending.count + drafts.count)
            for draft in drafts {
                switch draft.type {
                case .item: pending[draft.item] = .stored(draft, generation: generation)
                case .deletion: pending[draft.item] = .deleted
                case .genesis, .keybag, .checkpoint, .superseded, .ancestry, .indexPages, .index: break
                }
            }
        }
        unlisted = []
    }
}
