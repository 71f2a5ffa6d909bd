internal import Synchronization
internal import TokenVaultCore
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
    /// The receiver of every frame of an item that comes to light, in the order of the log.
    let announcer: ChangeAnnouncer

    let state: Mutex<LogState>
    /// The number of holders of the writers' lock in this process: one, or none.
    let isWriting = Mutex(0)
    /// The reason that this process writes no more, or not until that is repaired.
    let stop = Mutex<WritingStop?>(nil)
    /// The deadline until which other writers are expected, since they wrote a moment ago.
    let othersWrote = Mutex<Deadline?>(nil)
    /// Whether this process removed a crash's remainder behind the log.
    let hasCutTail = Mutex(false)
    /// The reason that compaction is put off; `nil` when it is not.
    let compactionPutOff = Mutex<String?>(nil)
    /// The reason that no index is written; `nil` when there is none.
    let indexPutOff = Mutex<String?>(nil)
    /// Whether a page of the index turned out to be damaged.
    let hasMetDamagedIndex = Mutex(false)
    /// What opens the keybag in use, where that is another one than before.
    let keybagOpener = Mutex<KeybagOpenerReference>(.init())
    /// The keys that the vault is open with.
    let ring: KeyRing
    /// The keybag that this process is about to put in use. Readers go on with the keys they hold, and get its keys in a moment.
    let comingKeybag = Mutex<KeybagRecord?>(nil)
    /// The number of imports under way, which want one index at their end and none between their commits.
    let importsUnderWay = Mutex(0)
    /// The most frames behind the index; see ``VaultFormat/tailBound``.
    let tailBound: Int

    /// Reads the log of `file`.
    init(
        location: VaultLocation, file: any DiskFile, ring: KeyRing, lockTimeout: LockTimeout, tailBound: Int,
        announcer: ChangeAnnouncer
    ) throws(TokenStorageError) {
        self.location = location
        self.ring = ring
        let codec = FrameCodec(vault: ring.vault, keys: ring.log)
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
    }

    /// Runs `body` with the state after a look at what others appended, once the keys of its keybag were checked. Throws the
    /// reason that they are not held.
    func withCheckedState<Value: Sendable>(
        _ body: (inout LogState) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        while true {
            let value = try withFreshState { (state) throws(TokenStorageError) -> Value? in
                guard isChecked(state.keybag) else { return Value?.none }
                return .some(try body(&state))
            }
            if let value { return value }
            try checkKeybag()
        }
    }

    /// Returns the log's present entry for `item`, with the writes of other processes.
    func entry(for item: ItemIdentifier) throws(TokenStorageError) -> (IndexEntry, any DiskFile)? {
        try withCheckedState { (state) throws(TokenStorageError) in
            try usingIndex(of: &state) { (index) throws(TokenStorageError) in try index.entry(of: item) }
                .map { ($0, state.file) }
        }
    }

    /// Returns the places of the values of `item` that the file has now, the newest first, and the file.
    /// Empty when the item is absent.
    func values(of item: ItemIdentifier) throws(TokenStorageError) -> ([IndexEntry], any DiskFile) {
        try withCheckedState { (state) throws(TokenStorageError) in
            let values = try usingIndex(of: &state) { (index) throws(TokenStorageError) -> [IndexEntry] in
                guard let newest = try index.entry(of: item) else { return [] }
                return [newest] + (try index.replaced(item)).reversed()
            }
            return (values, state.file)
        }
    }

    /// Returns every present item, in the order of their places, and the file that has them.
    func entries() throws(TokenStorageError) -> ([(ItemIdentifier, IndexEntry)], any DiskFile) {
        try withCheckedState { (state) throws(TokenStorageError) in
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
            // No other process writes meanwhile, and the locked file stays in use.
            if isWriting.withLock({ $0 }) == 0 { try refresh(&state) }
            return try body(&state)
        }
    }

    /// Runs `body` as ``withFreshState(_:)`` does, where writes of other machines show only after opening and
    /// locking the file again, as on NFS. The lock is of a separately opened file: two threads may hold it,
    /// and writers of this process wait as others do.
    private func withFreshStateLocked<Value: Sendable>(
        _ body: (inout LogState) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        let opened = try VaultFile.open(location, for: .use)
        let lock = WriterLock(file: opened.file)
        try lock.take(.shared, until: Deadline(after: lockTimeout))
        defer { lock.release() }
        let identity = opened.attributes.identity
        return try withLockedState { (state) throws(TokenStorageError) in
            if isWriting.withLock({ $0 }) == 0 {
                if state.identity == identity { try refresh(&state) } else { try reload(&state) }
            }
            return try body(&state)
        }
    }

    /// Runs `body` with the index. If a page is damaged, runs it once more with an index made from the log
    /// itself.
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

    /// Looks at what others appended, and at another file when this one was replaced. Bytes that do not check
    /// are a write under way, and count as the end.
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

    /// Whether others wrote in the last second: other processes, or this one through another
    /// `BlockingFileVault`.
    var hasOtherWriters: Bool { othersWrote.withLock { $0.map { !$0.hasPassed } ?? false } }

    /// Notes that others write as well.
    func noteOthers() { othersWrote.withLock { $0 = Deadline(after: .seconds(1)) } }

    /// Returns whether the path leads to another file than the one that is open.
    func isReplaced(_ state: LogState) throws(TokenStorageError) -> Bool {
        try isReplaced(identity: state.identity)
    }

    func isReplaced(_ file: any DiskFile) throws(TokenStorageError) -> Bool {
        try isReplaced(identity: try onDisk { () throws(SystemFailure) in try file.attributes().identity })
    }

    /// Returns whether another file is known to be at the path.
    func isOtherFileInPlace(of state: LogState) -> Bool {
        (try? location.directory.attributes(of: location.name)).map { $0.identity != state.identity } ?? false
    }

    /// Returns the same for `identity`. Throws `unavailable` also when the directory was made again around
    /// the same file.
    private func isReplaced(identity: FileIdentity) throws(TokenStorageError) -> Bool {
        try location.requireDirectory()
        return try attributesInPlace(of: identity).identity != identity
    }

    /// Returns the attributes of the file at the vault's path now. Throws `unavailable` when there is none,
    /// or when the directory was moved away.
    ///
    /// The expected file is found by one look, at its path from the root: with one name it is nowhere else. A
    /// caller that is about to write looks at the directory as well.
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

    /// Looks whether the path leads to another file by now, for a reader whose bytes did not open.
    func reloadIfReplaced() throws(TokenStorageError) {
        try withLockedState { (state) throws(TokenStorageError) in
            if isWriting.withLock({ $0 }) == 0, try isReplaced(state) { try reload(&state) }
        }
    }

    /// Opens the path again and reads it.
    func reload(_ state: inout LogState) throws(TokenStorageError) {
        let file = try loader.openReplacement()
        noteOthers()
        guard announcer.isObserved else {
            state = try loader.load(file, seen: state.sequence)
            return try noteReading(&state, isFresh: true)
        }
        // Deletions from before the live items moved show only in the file that they were in.
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
            return try noteReading(&state, isFresh: true)
        }
        // A failed attempt to read may have reported frames of another file. Only the frames of this file
        // count.
        var latest: [ItemIdentifier: ScannedFrame] = [:]
        for one in news where one.file === fresh.file { latest[one.frame.header.item] = one.frame }
        for frame in latest.values.sorted(by: { $0.header.generation < $1.header.generation }) {
            announcer.announce(frame, in: fresh.file, keepingDark: !isChecked(fresh.keybag))
        }
        try noteReading(&state, isFresh: true)
    }

    /// Returns whether `fresh` covers all that happened to what `old` knows: nothing of it is gone unseen or
    /// older than it was.
    private func isContinued(_ old: LogState, by fresh: LogState) -> Bool {
        guard fresh.identity != old.identity, fresh.epoch.number > old.epoch.number else { return false }
        // Moving commits nothing: no file in between got a commit.
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

    /// Takes in the frames that were appended to a file before another took its place.
    private func readRest(of state: inout LogState) throws(TokenStorageError) {
        var scanner = LogScanner(file: state.file, codec: codec, chunk: 64 << 10)
        let found = try scanner.scan(from: state.tail, previous: state.chain)
        try apply(found, to: &state)
    }

    /// Takes in frames that were scanned behind the tail.
    func apply(_ found: ScanResult, to state: inout LogState) throws(TokenStorageError) {
        try apply([found.frames], trailer: found.trailer, to: &state)
    }

    /// Takes in frames behind the tail, in any number of lists. The bytes in front of their end are
    /// `trailer`.
    func apply(
        _ frames: [[ScannedFrame]], trailer: [UInt8], to state: inout LogState
    ) throws(TokenStorageError) {
        let count = frames.reduce(0) { $0 + $1.count }
        guard count > 0 else { return }
        try requireLaterKeybags(frames, than: state.keybag, in: state.file)
        state.index.reserve(count)
        let isObserved = announcer.isObserved
        for list in frames {
            for frame in list {
                try loader.apply(frame, to: &state)
                if isObserved, frame.header.isItem {
                    announcer.announce(frame, in: state.file, keepingDark: !isChecked(state.keybag))
                }
            }
        }
        state.trailer = trailer
        state.size = max(state.size, state.tail)
    }

    /// Returns the sealed bytes at `range`, from the file that an entry was found in.
    func read(_ range: Range<Int>, from file: any DiskFile) throws(TokenStorageError) -> [UInt8] {
        try onDisk { () throws(SystemFailure) in try file.read(range.count, at: range.lowerBound) }
    }

    /// Returns the number of items, the file's size and the bytes that compaction would free.
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
            return (
                figures.items, state.size, max(0, state.tail - needed),
                state.isAnchored && !state.isReadingDue && !anchor.isStuck
            )
        }
    }

    /// Returns the number of values that merges left in the files that they took items from.
    func valuesLeftInCopies() throws(TokenStorageError) -> Int {
        try withFreshState { (state) throws(TokenStorageError) in
            state.ancestryLength > 0 ? try loader.ancestry(of: state).left.count : 0
        }
    }
}

extension FrameHeader {
    /// Whether the frame is of an item: its value, or its end.
    var isItem: Bool { type == RecordType.item.rawValue || type == RecordType.deletion.rawValue }
}
