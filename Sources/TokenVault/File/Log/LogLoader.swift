internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Reads a whole log, tells crash from damage, and checks it against the anchor.
struct LogLoader {
    let location: VaultLocation
    let codec: FrameCodec
    let anchor: Anchor
    let lockTimeout: Duration

    /// The state of the vault: of `file`, or of the one at the path when that was replaced meanwhile.
    /// What looks damaged, torn or rolled back is looked at again under the lock, since a write or a
    /// compaction may be under way.
    func load(
        _ file: any DiskFile, observer: (ScannedFrame) -> Void = { _ in }
    ) throws(TokenStorageError) -> LogState {
        let deadline = Deadline(after: lockTimeout)
        var file = file
        while true {
            if let state = try loadUnlocked(file, observer: observer) { return state }
            let lock = WriterLock(file: file)
            try lock.take(.shared, until: deadline)
            defer { lock.release() }
            // An old file is rightly older than what the anchor says.
            if try isAtPath(file) { return try loadLocked(file, observer: observer) }
            file = try VaultFiles.open(location)
            if deadline.hasPassed { throw .file(.timedOut) }
        }
    }

    /// The state of `file`, whose lock the caller holds and which is at the path.
    func loadLocked(
        _ file: any DiskFile, observer: (ScannedFrame) -> Void = { _ in }
    ) throws(TokenStorageError) -> LogState {
        let loaded = try read(file, anchored: try anchor.read(), observer: observer)
        if case .failing(let place) = loaded.stop {
            try TailClassifier(file: file, codec: codec).requireTorn(at: place)
        }
        return loaded.state
    }

    /// The state of `file` as it is, or `nil` when something about it is odd.
    private func loadUnlocked(
        _ file: any DiskFile, observer: (ScannedFrame) -> Void
    ) throws(TokenStorageError) -> LogState? {
        do throws(TokenStorageError) {
            // The anchor is read first: the log only grows meanwhile.
            let anchored = try anchor.read()
            let loaded = try read(file, anchored: anchored, observer: observer)
            return loaded.stop == .clean ? loaded.state : nil
        } catch {
            if error.code == .corrupt || error.code == .rolledBack { return nil }
            throw error
        }
    }

    private func isAtPath(_ file: any DiskFile) throws(TokenStorageError) -> Bool {
        let location = location
        return try onDisk { () throws(SystemFailure) in
            let there = try location.directory.attributes(of: location.name)
            return there?.identity == (try file.attributes().identity)
        }
    }

    private struct Loaded {
        var state: LogState
        var stop: ScanResult.Stop
    }

    private func read(
        _ file: any DiskFile, anchored: AnchorSlot?, observer: (ScannedFrame) -> Void
    ) throws(TokenStorageError) -> Loaded {
        let attributes = try onDisk { () throws(SystemFailure) in try file.attributes() }
        guard attributes.size > VaultFormat.logStart else {
            throw .damage(at: attributes.size, "the file ends")
        }
        var scanner = LogScanner(file: file, codec: codec, chunk: 256 << 10)
        var found = try scanner.scan(from: VaultFormat.logStart, previous: FrameCodec.chainStart)
        guard let first = found.frames.first, first.header.type == RecordType.genesis.rawValue,
            try scanner.isWhole(first)
        else { throw .damage(at: VaultFormat.logStart, "no first frame") }
        let genesis = try genesis(of: first, file: file)
        var state = LogState(
            file: file, identity: attributes.identity, size: attributes.size, tail: found.end,
            trailer: found.trailer, chain: FrameCodec.chainStart, sequence: genesis.baseSequence,
            epoch: genesis.epoch, keybag: genesis.keybag)
        var metHead = anchored == nil || anchored?.epoch != genesis.epoch
        for frame in found.frames {
            try apply(frame, to: &state)
            if frame.header.isItem { observer(frame) }
            if let anchored, frame.chain == anchored.head { metHead = true }
        }
        if let anchored {
            try check(state, against: anchored, metHead: metHead, stop: found.stop)
            state.isAnchored = true
        }
        if found.stop == .clean, try !scanner.isZeroToEnd(from: state.tail) {
            found.stop = .failing(at: state.tail)
        }
        return Loaded(state: state, stop: found.stop)
    }

    /// Throws `rolledBack` when this device has seen the vault go further than the log does.
    private func check(
        _ state: LogState, against anchored: AnchorSlot, metHead: Bool, stop: ScanResult.Stop
    ) throws(TokenStorageError) {
        let isNewer = state.epoch.number > anchored.epoch.number
        let reaches =
            isNewer ? state.sequence >= anchored.sequence : state.epoch == anchored.epoch && metHead
        guard !reaches || state.keybag.generation < anchored.keybagGeneration else { return }
        // Bytes that do not check in a place that was durable are damage, not an older copy.
        if case .failing(let place) = stop, !reaches, state.epoch == anchored.epoch {
            throw .damage(at: place, "a damaged frame")
        }
        throw .file(.rolledBack)
    }

    private func genesis(
        of frame: ScannedFrame, file: any DiskFile
    ) throws(TokenStorageError) -> GenesisRecord {
        let payload = try control(of: frame, file: file)
        // A control record is padded to eight bytes; genesis is a multiple of it.
        guard let record = try? GenesisRecord(decoding: payload) else {
            throw .damage(at: frame.offset, "an unreadable first frame")
        }
        return record
    }

    /// Which keybag a keybag frame names.
    private func keybag(of frame: ScannedFrame, file: any DiskFile) throws(TokenStorageError) -> KeybagRecord
    {
        let payload = try control(of: frame, file: file)
        guard let record = try? KeybagRecord(decoding: payload) else {
            throw .damage(at: frame.offset, "an unreadable keybag record")
        }
        return record
    }

    private func control(
        of frame: ScannedFrame, file: any DiskFile
    ) throws(TokenStorageError) -> [UInt8] {
        let sealed = try onDisk { () throws(SystemFailure) in
            try file.read(frame.header.bodyLength, at: frame.offset + Frame.contentOffset)
        }
        guard frame.header.metadataLength == 0,
            let payload = try codec.openControl(sealed, header: frame.header)
        else { throw .damage(at: frame.offset, "a damaged control record") }
        return payload
    }

    /// Takes one frame into the state.
    func apply(_ frame: ScannedFrame, to state: inout LogState) throws(TokenStorageError) {
        let header = frame.header
        switch RecordType(rawValue: header.type) {
        case .item: state.index.store(header.item, IndexEntry(header, at: frame.offset))
        case .deletion: state.index.remove(header.item)
        case .keybag: state.keybag = try keybag(of: frame, file: state.file)
        case .genesis, .checkpoint, .superseded: break
        case nil:
            guard header.type >= RecordType.firstIgnorable else {
                throw .file(.unsupportedFormat, underlying: "an unknown record")
            }
        }
        state.chain = frame.chain
        state.tail = frame.end
        state.sequence = max(state.sequence, header.generation)
        state.isSuperseded = header.type == RecordType.superseded.rawValue
    }
}
