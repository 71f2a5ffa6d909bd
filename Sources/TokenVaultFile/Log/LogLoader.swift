internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Reads a log, by its index block where it has one, distinguishes a crash from damage, and compares the log
/// with the anchor.
struct LogLoader {
    let location: VaultLocation
    let codec: FrameCodec
    let anchor: Anchor
    let lockTimeout: LockTimeout

    /// Returns the state of the vault: of `file`, or of the one at the path when `file` was replaced
    /// meanwhile. A log that looks damaged, torn or rolled back is read again under the lock: a write or a
    /// compaction may be under way.
    ///
    /// `observer` gets the frames that are read. For a caller that knows the vault up to the commit `seen`,
    /// that is at least every frame since.
    func load(
        _ file: any DiskFile, seen: UInt64? = nil, observer: Observer = { _, _ in }
    ) throws(TokenStorageError) -> LogState {
        if location.readOnlyReason != nil { return try loadWithoutLock(file, seen: seen, observer: observer) }
        let deadline = Deadline(after: lockTimeout)
        var file = file
        while true {
            do throws(TokenStorageError) {
                // The anchor is read first: the log only grows meanwhile.
                let anchored = try anchor.read()
                let loaded = try read(file, .byIndex(seen: seen), anchored: anchored, observer: observer)
                if loaded.stop == .clean { return loaded.state }
            } catch {
                guard error.code.mayBeOfOldFile else { throw error }
            }
            let lock = WriterLock(file: file)
            try lock.take(.shared, until: deadline)
            defer { lock.release() }
            // An old file is rightly older than the anchor.
            if try isAtPath(file) {
                return try loadLocked(file, .byIndex(seen: seen), observer: observer)
            }
            file = try openReplacement()
            if deadline.hasPassed { throw .file(.timedOut) }
        }
    }

    /// The receiver of the frames that are read.
    typealias Observer = (ScannedFrame, any DiskFile) throws(TokenStorageError) -> Void

    /// The way to read a log.
    enum Way {
        /// By its index block, unless that goes further than the commit `seen`; else as `walking`.
        case byIndex(seen: UInt64?)
        /// Along all of it, trusting no index block; the observer gets every frame.
        case walking
    }

    /// Returns the state of `file`, whose lock the caller holds and which is at the path.
    func loadLocked(
        _ file: any DiskFile, _ way: Way, observer: Observer = { _, _ in }
    ) throws(TokenStorageError) -> LogState {
        let loaded = try read(file, way, anchored: try anchor.read(), observer: observer)
        if case .failing(let place) = loaded.stop {
            try TailClassifier(file: file, codec: codec).requireTorn(at: place)
        }
        return loaded.state
    }

    /// Opens the file that is at the path by now. Throws `unexpectedVault` when it is another vault's.
    func openReplacement() throws(TokenStorageError) -> any DiskFile {
        let opened = try VaultFile.open(location, for: .use)
        let vaults = (try? opened.keybags.vaults) ?? []
        guard vaults.isEmpty || vaults.contains(codec.vault) else {
            throw .file(.unexpectedVault, .replacedVault(path: location.path.string))
        }
        return opened.file
    }

    func isAtPath(_ file: any DiskFile) throws(TokenStorageError) -> Bool {
        let location = location
        return try onDisk { () throws(SystemFailure) in
            let there = try location.directory.attributes(of: location.name)
            return there?.identity == (try file.attributes().identity)
        }
    }

    struct Loaded {
        var state: LogState
        var stop: ScanEnd.Stop
    }

    func read(
        _ file: any DiskFile, _ way: Way, anchored: AnchorSlot?, observer: Observer
    ) throws(TokenStorageError) -> Loaded {
        var usesIndex = false
        let attributes = try attributes(of: file)
        if case .byIndex(let seen) = way {
            let loaded = try readByIndex(
                file, attributes, anchored: anchored, seen: seen, observer: observer)
            if let loaded { return loaded }
            usesIndex = true
        }
        var state = try beginning(of: file, attributes)
        var metHead = false
        var scanner = LogScanner(file: file, codec: codec, chunk: 256 << 10)
        var found = try scanner.scan(from: VaultFormat.logStart, previous: FrameCodec.chainStart) {
            (frame) throws(TokenStorageError) in
            try apply(frame, to: &state, usingIndex: usesIndex)
            if !usesIndex || frame.header.isItem { try observer(frame, file) }
            if let anchored, frame.chain == anchored.head { metHead = true }
        }
        guard found.end > VaultFormat.logStart else {
            throw .damage(at: VaultFormat.logStart, .noFirstFrame)
        }
        state.tail = found.end
        state.trailer = found.trailer
        if let anchored {
            try check(&state, against: anchored, metHead: metHead, stop: found.stop)
        }
        try requireWholeBeginning(state, found.stop)
        if found.stop == .clean, try !scanner.isZeroToEnd(from: state.tail) {
            found.stop = .failing(at: state.tail)
        }
        return Loaded(state: state, stop: found.stop)
    }

    /// Throws `corrupt` for a log that ends inside what was written with the file: that is whole before the file gets its
    /// name. Each commit in it is complete, so that nothing else shows what is missing.
    func requireWholeBeginning(_ state: LogState, _ stop: ScanEnd.Stop) throws(TokenStorageError) {
        guard !state.isBeginningWhole else { return }
        if case .failing(let place) = stop { throw .damage(at: place, .frame) }
        throw .damage(at: state.tail, .end)
    }

    /// Returns the attributes. Throws `corrupt` when the file is too short for a log.
    func attributes(of file: any DiskFile) throws(TokenStorageError) -> FileAttributes {
        let attributes = try onDisk { () throws(SystemFailure) in try file.attributes() }
        guard attributes.size > VaultFormat.logStart else {
            throw .damage(at: attributes.size, .end)
        }
        return attributes
    }

    /// Returns the state in front of the first frame of `file`, which has the initial values of the log.
    func beginning(
        of file: any DiskFile, _ attributes: FileAttributes
    ) throws(TokenStorageError) -> LogState {
        var front = LogScanner(file: file, codec: codec, chunk: 4 << 10)
        guard let first = try front.frame(at: VaultFormat.logStart),
            first.header.type == RecordType.genesis.rawValue, try front.isWhole(first)
        else { throw .damage(at: VaultFormat.logStart, .noFirstFrame) }
        let genesis = try genesis(of: first, file: file)
        var state = LogState(
            file: file, identity: attributes.identity, size: attributes.size, tail: VaultFormat.logStart,
            trailer: [], chain: FrameCodec.chainStart, head: FrameCodec.chainStart,
            sequence: genesis.baseSequence, epoch: genesis.epoch, keybag: genesis.keybag,
            baseSequence: genesis.baseSequence)
        state.frontChain = first.chain
        state.isWalked = true
        return state
    }

    func genesis(
        of frame: ScannedFrame, file: any DiskFile
    ) throws(TokenStorageError) -> GenesisRecord {
        let payload = try control(of: frame, file: file)
        // A control record is padded to eight bytes; genesis is a multiple of it.
        guard let record = try? GenesisRecord(decoding: payload) else {
            throw .damage(at: frame.offset, .firstFrame)
        }
        return record
    }

    /// Returns the keybag that a keybag frame names.
    func keybag(of frame: ScannedFrame, file: any DiskFile) throws(TokenStorageError) -> KeybagRecord {
        let payload = try control(of: frame, file: file)
        guard let record = try? KeybagRecord(decoding: payload) else {
            throw .damage(at: frame.offset, .keybagRecord)
        }
        return record
    }

    func control(
        of frame: ScannedFrame, file: any DiskFile
    ) throws(TokenStorageError) -> [UInt8] {
        let sealed = try onDisk { () throws(SystemFailure) in
            try file.read(frame.header.bodyLength, at: frame.offset + Frame.contentOffset)
        }
        // Another file of the vault may have the same record of other contents, sealed under the same key.
        guard frame.header.metadataLength == 0, Digest(of: sealed) == frame.header.contentDigest,
            let payload = try codec.openControl(sealed, header: frame.header)
        else { throw .damage(at: frame.offset, .controlRecord) }
        return payload
    }

    /// Takes one frame into the state. An index block replaces the entries in memory, unless `usingIndex` is
    /// false.
    func apply(
        _ frame: ScannedFrame, to state: inout LogState, usingIndex: Bool = true
    ) throws(TokenStorageError) {
        let header = frame.header
        if usingIndex { try takeIndex(before: frame, in: &state) }
        state.framesSinceIndex += 1
        switch RecordType(rawValue: header.type) {
        case .item: state.index.store(header.item, IndexEntry(header, at: frame.offset))
        case .deletion:
            state.index.remove(header.item)
            state.leastTailToCompact = 0
        case .keybag:
            state.keybag = try keybag(of: frame, file: state.file)
            state.leastTailToCompact = 0
        case .genesis, .checkpoint, .superseded, .indexPages: break
        case .ancestry: state.takeAncestry(frame)
        case .index: state.newIndex = frame
        case nil:
            guard header.type >= RecordType.firstIgnorable else {
                throw .file(.unsupportedFormat, .newerFormat(.record))
            }
        }
        state.chain = frame.chain
        state.tail = frame.end
        state.sequence = max(state.sequence, header.generation)
        state.isSuperseded = header.type == RecordType.superseded.rawValue
        if !state.isSuperseded { state.head = frame.chain }
        if let commit = frame.commit {
            state.trail.append(commit)
            state.isBeginningWhole = true
        }
    }
}
