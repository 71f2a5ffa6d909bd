internal import Synchronization
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The append-only log of a vault: finds items, notices what other processes appended, and hands out
/// sealed bytes. It holds the log's keys and knows nothing of policies.
///
/// Reading is here; writing, compaction and loading are in extensions beside it.
final class VaultLog: Sendable {
    let location: VaultLocation
    let codec: FrameCodec
    let anchor: Anchor
    let lockTimeout: LockTimeout
    let loader: LogLoader
    /// Told of every frame of an item that comes to light, in the order of the log.
    let announcer: ChangeAnnouncer

    let state: Mutex<LogState>
    /// How many of this process hold the writers' lock: one, or none.
    let isWriting = Mutex(0)
    /// Why this process writes no more, or not until that is mended.
    let stop = Mutex<WritingStop?>(nil)
    /// Until when others are reckoned with, who wrote a moment ago.
    let othersWrote = Mutex<Deadline?>(nil)
    /// Whether this process removed what a crash had left behind the log.
    let hasCutTail = Mutex(false)
    /// Why compaction is put off, when it is.
    let compactionPutOff = Mutex<String?>(nil)
    /// Why no index is written, when it should be.
    let indexPutOff = Mutex<String?>(nil)
    /// Whether a page of the index turned out to be damaged.
    let hasMetDamagedIndex = Mutex(false)
    /// How many imports are under way, which want one index at their end and none between their commits.
    let importsUnderWay = Mutex(0)
    /// How many frames may follow the index; see ``VaultFormat/tailBound``.
    let tailBound: Int

    /// Reads the log of `file`.
    init(
        location: VaultLocation, file: any DiskFile, codec: FrameCodec, lockTimeout: LockTimeout,
        tailBound: Int,
        announcer: ChangeAnnouncer
    ) throws(TokenStorageError) {
        self.location = location
        self.codec = codec
        self.lockTimeout = lockTimeout
        self.tailBound = tailBound
        self.announcer = announcer
        let anchor = Anchor(directory: location.state, vault: codec.vault, key: codec.keys.anchor)
        self.anchor = anchor
        let loader = LogLoader(
            location: location, codec: codec, anchor: anchor, lockTimeout: lockTimeout)
        self.loader = loader
        state = Mutex(try loader.load(file))
        try withLockedState { (state) throws(TokenStorageError) in try noteReading(&state) }
    }

    /// What the log knows now of `item`, as far as other processes have written.
    func entry(for item: ItemIdentifier) throws(TokenStorageError) -> (IndexEntry, any DiskFile)? {
        try withFreshState { (state) throws(TokenStorageError) in
            try usingIndex(of: &state) { (index) throws(TokenStorageError) in try index.entry(of: item) }
                .map { ($0, state.file) }
        }
    }

    /// Where the values of `item` are that the file has now, the newest first, and the file. Empty when the item is not there.
    func values(of item: ItemIdentifier) throws(TokenStorageError) -> ([IndexEntry], any DiskFile) {
        try withFreshState { (state) throws(TokenStorageError) in
            let values = try usingIndex(of: &state) { (index) throws(TokenStorageError) -> [IndexEntry] in
                guard let newest = try index.entry(of: item) else { return [] }
                return [newest] + (try index.replaced(item)).reversed()
            }
            return (values, state.file)
        }
    }

    /// Every item now, in the order of their places, and the file that these are in.
    func entries() throws(TokenStorageError) -> ([(ItemIdentifier, IndexEntry)], any DiskFile) {
        try withFreshState { (state) throws(TokenStorageError) in
            let items = try usingIndex(of: &state) { (index) throws(TokenStorageError) in
                try index.itemsByOffset()
            }
            return (items, state.file)
        }
    }

    /// Runs `body` with the state after a look at what others appended.
    func withFreshState<Value: Sendable>(
        _ body: (inout LogState) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        if location.locksReaders, isWriting.withLock({ $0 }) == 0 { return try withFreshStateLocked(body) }
        return try withLockedState { (state) throws(TokenStorageError) in
            if !state.isCommitting { try refresh(&state) }
            return try body(&state)
        }
    }

    /// As ``withFreshState(_:)`` where writes of other machines show only to who opens and locks the file anew, as on
    /// NFS. The lock is of a file of its own: two threads may hold it, and writers of this process wait as others do.
    private func withFreshStateLocked<Value: Sendable>(
        _ body: (inout LogState) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        let opened = try VaultFile.open(location, for: .use)
        let lock = WriterLock(file: opened.file)
        try lock.take(.shared, until: Deadline(after: lockTimeout))
        defer { lock.release() }
        let identity = opened.attributes.identity
        return try withLockedState { (state) throws(TokenStorageError) in
            if !state.isCommitting {
                if state.identity == identity { try refresh(&state) } else { try reload(&state) }
            }
            return try body(&state)
        }
    }

    /// Runs `body` with the index; where a page of that is damaged, once more with one made from the log itself.
    func usingIndex<Value>(
        of state: inout LogState, _ body: (inout LogIndex) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        do throws(TokenStorageError) {
            return try body(&state.index)
        } catch {
            guard error.code == .corrupt, state.index.block != nil else { throw error }
        }
        try loader.rebuildIndex(of: &state)
        hasMetDamagedIndex.withLock { $0 = true }
        return try body(&state.index)
    }

    /// Looks at what others appended, and at another file when this one was replaced. Bytes that do not
    /// check are a write under way, and taken for the end.
    func refresh(_ state: inout LogState) throws(TokenStorageError) {
        if state.isSuperseded, try isReplaced(state) {
            try reload(&state)
            return
        }
        let file = state.file
        let tail = state.tail
        let probe = try onDisk { () throws(SystemFailure) in
            try file.read(Frame.checksumLength + Frame.prefixLength, at: tail - Frame.checksumLength)
        }
        guard probe.starts(with: state.trailer), probe.count >= Frame.checksumLength else {
            try reload(&state)
            return
        }
        guard Frame.length(ofPrefix: probe, at: Frame.checksumLength) != nil else {
            if state.isReadingDue { try noteReading(&state) }
            return
        }
        var scanner = LogScanner(file: file, codec: codec, chunk: 8 << 10)
        let found = try scanner.scan(from: tail, previous: state.chain)
        if !found.frames.isEmpty { noteOthers() }
        try apply(found, to: &state)
        if state.isSuperseded, try isReplaced(state) { return try reload(&state) }
        if !found.frames.isEmpty { try noteReading(&state) }
    }

    /// Whether others wrote in the last second: other processes, or this one through another `BlockingFileVault`.
    var hasOtherWriters: Bool { othersWrote.withLock { $0.map { !$0.hasPassed } ?? false } }

    /// Takes note that others write as well.
    func noteOthers() { othersWrote.withLock { $0 = Deadline(after: .seconds(1)) } }

    /// Whether the path leads to another file than the one that is open.
    func isReplaced(_ state: LogState) throws(TokenStorageError) -> Bool {
        try isReplaced(identity: state.identity)
    }

    func isReplaced(_ file: any DiskFile) throws(TokenStorageError) -> Bool {
        try isReplaced(identity: try onDisk { () throws(SystemFailure) in try file.attributes().identity })
    }

    /// Throws `unavailable` also when the directory was made anew around the same file.
    private func isReplaced(identity: FileIdentity) throws(TokenStorageError) -> Bool {
        try location.requireDirectory()
        return try attributesInPlace(of: identity).identity != identity
    }

    /// What is at the vault's path now. Throws `unavailable` when that is nothing, or when the directory was moved away.
    ///
    /// The file that is expected is found by one look, at its path from the root: with one name it is nowhere else. Whoever is
    /// to write looks at the directory as well.
    func attributesInPlace(of expected: FileIdentity) throws(TokenStorageError) -> FileAttributes {
        let location = location
        if let path = location.absolutePath, let there = try? FileAttributes(at: path, followingLinks: false),
            there.identity == expected, there.links == 1
        {
            return there
        }
        try location.requireDirectory()
        let there = try onDisk { () throws(SystemFailure) in
            try location.directory.attributes(of: location.name)
        }
        guard let there else { throw .vaultIsGone(at: location.path) }
        return there
    }

    /// For a reader whose bytes did not open: looks whether the path leads to another file by now.
    func reloadIfReplaced() throws(TokenStorageError) {
        try withLockedState { (state) throws(TokenStorageError) in
            if try isReplaced(state) { try reload(&state) }
        }
    }

    /// Opens the path anew and reads it.
    func reload(_ state: inout LogState) throws(TokenStorageError) {
        let file = try loader.openReplacement()
        noteOthers()
        guard announcer.isObserved else {
            state = try loader.load(file, seen: state.sequence)
            return try noteReading(&state)
        }
        // What was deleted before the live items moved shows in the file that they were in, and nowhere else.
        try? readRest(of: &state)
        let sequence = state.sequence
        var news: [(frame: ScannedFrame, file: any DiskFile)] = []
        let fresh = try loader.load(file, seen: sequence) { frame, file in
            if frame.header.generation > sequence { news.append((frame, file)) }
        }
        let follows = isContinued(state, by: fresh)
        state = fresh
        guard follows else {
            announcer.announceOverflow()
            return try noteReading(&state)
        }
        // An attempt to read that came to nothing has told the same, of another file perhaps.
        var latest: [ItemIdentifier: ScannedFrame] = [:]
        for one in news where one.file === fresh.file { latest[one.frame.header.item] = one.frame }
        for frame in latest.values.sorted(by: { $0.header.generation < $1.header.generation }) {
            announcer.announce(frame, in: fresh.file)
        }
        try noteReading(&state)
    }

    /// Whether `fresh` tells all that happened to what `old` knows: nothing of it is gone unseen or older than it was.
    private func isContinued(_ old: LogState, by fresh: LogState) -> Bool {
        guard fresh.identity != old.identity, fresh.epoch.number > old.epoch.number else { return false }
        // Moving commits nothing: whatever files there were in between, nothing was committed to them.
        if fresh.baseSequence == old.sequence { return true }
        do throws(TokenStorageError) {
            var known = 0
            var isRight = true
            try fresh.index.forEachItem { (item, entry) throws(TokenStorageError) in
                let before = try old.index.entry(of: item)
                if before != nil { known += 1 }
                if entry.generation <= old.sequence, before?.generation != entry.generation {
                    isRight = false
                }
            }
            let all = try old.index.figures().items
            return isRight && known == all
        } catch {
            return false
        }
    }

    /// Takes in what was appended to a file before another took its place.
    private func readRest(of state: inout LogState) throws(TokenStorageError) {
        var scanner = LogScanner(file: state.file, codec: codec, chunk: 64 << 10)
        let found = try scanner.scan(from: state.tail, previous: state.chain)
        try apply(found, to: &state)
    }

    /// Takes in frames that were scanned behind the tail.
    func apply(_ found: ScanResult, to state: inout LogState) throws(TokenStorageError) {
        try apply([found.frames], trailer: found.trailer, to: &state)
    }

    /// Takes in frames behind the tail, in any number of lists. The bytes in front of their end are `trailer`.
    func apply(
        _ frames: [[ScannedFrame]], trailer: [UInt8], to state: inout LogState
    ) throws(TokenStorageError) {
        let count = frames.reduce(0) { $0 + $1.count }
        guard count > 0 else { return }
        state.index.reserve(count)
        let isObserved = announcer.isObserved
        for list in frames {
            for frame in list {
                try loader.apply(frame, to: &state)
                if isObserved, frame.header.isItem { announcer.announce(frame, in: state.file) }
            }
        }
        state.trailer = trailer
        state.size = max(state.size, state.tail)
    }

    /// The sealed bytes at `range`, from the file that an entry was found in.
    func read(_ range: Range<Int>, from file: any DiskFile) throws(TokenStorageError) -> [UInt8] {
        try onDisk { () throws(SystemFailure) in try file.read(range.count, at: range.lowerBound) }
    }

    /// The number of items, the file's size and how much of it compaction would free.
    func figures() throws(TokenStorageError) -> (items: Int, size: Int, reclaimable: Int, anchored: Bool) {
        try withFreshState { (state) throws(TokenStorageError) in
            let figures = try usingIndex(of: &state) { (index) throws(TokenStorageError) in
                try index.figures()
            }
            let kept = (try? keptValues(in: state)) ?? 0
            let keptBytes = try usingIndex(of: &state) { (index) throws(TokenStorageError) in
                try index.keptBytes(kept)
            }
            let needed =
                VaultFormat.logStart + figures.liveBytes + keptBytes + state.index.blockLength
                + state.ancestryLength
            return (figures.items, state.size, max(0, state.tail - needed), state.isAnchored)
        }
    }

    /// Which keybag holds.
    var keybagRecord: KeybagRecord { state.withLock { $0.keybag } }
}

extension FrameHeader {
    /// Whether the frame is of an item: its value, or its end.
    var isItem: Bool { type == RecordType.item.rawValue || type == RecordType.deletion.rawValue }
}
