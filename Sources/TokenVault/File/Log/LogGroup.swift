internal import Synchronization
internal import TokenVaultPlatform

/// Commits that are written together.
struct LogGroup {
    let start: Int
    private(set) var bytes: [UInt8] = []
    private(set) var frames: [ScannedFrame] = []
    private(set) var deleted: [ItemIdentifier] = []
    /// Whether the group may go into the reserve: it frees space, or changes who may open the vault.
    private(set) var mayUseReserve = true

    private let log: VaultLog
    private let file: any DiskFile
    private var pending: [ItemIdentifier: LogView.Pending] = [:]
    private var chain: Digest
    private var sequence: UInt64

    /// A group that follows what `log` holds. The caller holds the lock.
    init(after log: VaultLog) {
        self.log = log
        (start, file, chain, sequence) = log.state.withLock { ($0.tail, $0.file, $0.chain, $0.sequence) }
    }

    var isEmpty: Bool { frames.isEmpty }
    /// The generation that the next commit gets.
    var nextSequence: UInt64 { sequence + 1 }
    var end: Int { start + bytes.count }
    var trailer: [UInt8] { Array(bytes.suffix(Frame.checksumLength)) }

    /// Adds the commit of `request`; returns its generation, or `nil` when it changes nothing.
    mutating func add(_ request: WriteRequest) throws(TokenStorageError) -> Generation? {
        let next = sequence + 1
        guard next < VaultFormat.largestSequence else { throw .file(.internalError) }
        let drafts = try request.prepare(
            LogView(generation: next, log: log, file: file, pending: pending))
        return try add(drafts)
    }

    /// Adds a commit of these records.
    mutating func add(_ drafts: [FrameDraft]) throws(TokenStorageError) -> Generation? {
        guard let last = drafts.indices.last else { return nil }
        let next = sequence + 1
        var newBytes: [UInt8] = []
        var newFrames: [ScannedFrame] = []
        // A commit may be a whole import.
        newBytes.reserveCapacity(
            drafts.reduce(0) { $0 + Frame.overhead + $1.metadata.count + $1.body.count })
        newFrames.reserveCapacity(drafts.count)
        pending.reserveCapacity(pending.count + drafts.count)
        var newChain = chain
        for (position, draft) in drafts.enumerated() {
            let sealed = try log.codec.seal(
                draft, generation: next, groupStart: start, previous: newChain, endsCommit: position == last)
            newFrames.append(
                ScannedFrame(
                    offset: end + newBytes.count, header: sealed.header, chain: sealed.chain))
            newBytes += sealed.bytes
            newChain = sealed.chain
        }
        for draft in drafts {
            switch draft.type {
            case .item:
                pending[draft.item] = .stored(draft, generation: next)
                deleted.removeAll { $0 == draft.item }
                mayUseReserve = false
            case .deletion:
                pending[draft.item] = .deleted
                deleted.append(draft.item)
            case .genesis, .keybag, .checkpoint, .superseded, .indexPages, .index: break
            }
        }
        if isEmpty { bytes = newBytes } else { bytes += newBytes }
        frames += newFrames
        chain = newChain
        sequence = next
        return Generation(rawValue: next)
    }
}
