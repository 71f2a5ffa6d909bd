internal import Synchronization
internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

// Compaction: the live frames move to a new file under the same name. Bodies are copied sealed, so that
// a holder of few keys destroys nothing it cannot read.
extension VaultLog {
    /// Seals the contents of a live item again, under its present generation; returns `nil` to copy them
    /// unchanged.
    typealias Resealing = (ItemIdentifier, IndexEntry, [UInt8]) throws(TokenStorageError) -> FrameDraft?

    /// The moment when the old file's readers are notified to look at the path.
    enum Telling {
        /// Before another file is there. If the process ends in between, its readers look in vain.
        case before
        /// Once another file is there, where the old file is not whole behind its last durable record. A
        /// notice written there would look like damage if the file stayed.
        case afterwards
    }

    /// Returns the name of the file that compaction writes before it takes the vault's name.
    static func temporaryName(for name: String) -> String { ".\(name).new" }

    /// Compacts, taking the writers' lock.
    func compact(
        progress: ((Int, Int) -> Void)?, resealing: Resealing? = nil
    ) throws(TokenStorageError) -> CompactionReport {
        try whileWriting { file throws(TokenStorageError) in
            let before = state.withLock { $0.size }
            let lost = try moveToNewFile(from: file, progress: progress, resealing: resealing)
            return CompactionReport(
                sizeBefore: before, sizeAfter: state.withLock { $0.size }, damagedValues: lost)
        }
    }

    /// Compacts when that is worth it. A failure leaves the vault unchanged, only larger. This process does
    /// not try again: on a full disk every write would try.
    func compactIfWorthIt() {
        guard wantsCompaction else { return }
        // Compaction is tried again once that is settled, and `status` reports it until then.
        let file = state.withLock { $0.file }
        if let others = try? HardLinks(location: location).count(of: file), others > 0 { return }
        do throws(TokenStorageError) {
            _ = try compact(progress: nil)
        } catch {
            // The next write finds the file that is at the path by now.
            guard error.reason != .ancestry(.tookPlace) else { return }
            compactionPutOff.withLock { $0 = $0 ?? "the vault could not be compacted (\(error.code))" }
        }
    }

    /// Whether more of the file is dead than alive, and enough to be worth a new file.
    private var wantsCompaction: Bool {
        let mayBe = state.withLock { state in
            state.tail >= state.leastTailToCompact && state.deadBytes > state.deadBytesWorthIt(keeping: 0)
        }
        guard mayBe, compactionPutOff.withLock({ $0 == nil }) else { return false }
        return (try? isWorthItWithKeptValues()) ?? true
    }

    /// Returns ``wantsCompaction``, with the replaced values that the vault keeps counted as alive. They are
    /// counted again only when the log has grown by as much as is missing.
    private func isWorthItWithKeptValues() throws(TokenStorageError) -> Bool {
        try withLockedState { (state) throws(TokenStorageError) in
            let kept = try keptValues(in: state)
            guard kept > 0 else { return true }
            let bytes = try usingIndex(of: &state) { (index) throws(TokenStorageError) in
                try index.keptBytes(kept)
            }
            let missing = state.deadBytesWorthIt(keeping: bytes) + bytes - state.deadBytes
            if missing < 0 { return true }
            state.leastTailToCompact = state.tail + missing
            return false
        }
    }

    /// Returns the values that a compaction would leave: present values, and the replaced ones that the vault
    /// keeps.
    func lastingEntries() throws(TokenStorageError) -> [IndexEntry] {
        try withCheckedState { (state) throws(TokenStorageError) in
            let kept = try keptValues(in: state)
            return try usingIndex(of: &state) { (index) throws(TokenStorageError) in
                try index.valuesByOffset(keeping: kept).map(\.entry)
            }
        }
    }

    /// Returns the number of replaced values of an item that compaction keeps, from the keybag in use.
    func keptValues(in state: LogState) throws(TokenStorageError) -> Int {
        Int(try currentKeybagCopy(in: state).keybag.keptValues)
    }

    /// Moves the live frames of `file`, whose lock the caller holds, to a new file, which is locked when
    /// this returns. The old file's lock stays as well. Returns the number of damaged replaced values, which do not move.
    @discardableResult
    func moveToNewFile(
        from file: any DiskFile, progress: ((Int, Int) -> Void)? = nil, resealing: Resealing? = nil,
        tellingReaders telling: Telling = .before
    ) throws(TokenStorageError) -> Int {
        let second = HardLinks(location: location)
        try second.requireNone(of: file)
        try second.removeLeftOver(of: file)
        let old = state.withLock { $0 }
        let directory = location.directory
        let name = Self.temporaryName(for: location.name)
        // Only the holder of the vault's lock writes a file of this name: an existing one is a crash's.
        try? directory.remove(name)
        UnfinishedFiles(directory: directory, kind: .vault(location.name)).removeLeftOver()
        let fresh = try onDisk { () throws(SystemFailure) in try directory.open(name, .create) }
        var renamed = false
        defer { if !renamed { try? directory.remove(name) } }
        guard try onDisk({ () throws(SystemFailure) in try fresh.tryLock(.exclusive) }) else {
            throw .file(.internalError)
        }
        let (written, damaged) = try write(old, to: fresh, progress: progress, resealing: resealing)
        try onDisk { () throws(SystemFailure) in try fresh.synchronize() }
        // In a directory that was replaced, no process would look for the new file. The anchor would still
        // make this device expect that file.
        try location.requireDirectory()
        // A reader that finds the new file must make its name durable before it anchors what it has read
        // there.
        let expected = try withLockedState { (state) throws(TokenStorageError) in
            // The anchor may know the file in use only as the expected one.
            if state.seen?.coming == state.epoch, state.isTailSettled {
                do throws(TokenStorageError) { try advanceAnchor(&state) } catch { throw .tookPlace }
            }
            do throws(TokenStorageError) {
                if let slot = try anchor.expect(written, seen: state.seen) { state.seen = slot }
            } catch {
                // Without the record, the new file shows by its ancestry that it descends from this one.
                guard error.code != .conflict else { throw error }
            }
            return state.seen
        }
        // A file that was put in the place meanwhile must not be lost.
        guard try attributesInPlace(of: old.identity).identity == old.identity else { throw .tookPlace }
        if telling == .before { try? announceReplacement(in: file) }
        do {
            try directory.rename(name, to: location.name, replacing: true)
        } catch {
            let reason = "\(error.call): \(error.errno.description)"
            compactionPutOff.withLock {
                $0 =
                    error.errno == .resourceBusy
                    ? "the vault file is a mount point and cannot be replaced, so it is not compacted: "
                        + "mount its directory"
                    : "the vault file cannot be replaced (\(reason))"
            }
            // The old file stays in use. The next append declares everything before it durable, and the mark
            // that was just left is not yet durable.
            do { try file.synchronize() } catch { stopWriting(after: error) }
            throw .system(error)
        }
        renamed = true
        if telling == .afterwards { try? announceReplacement(in: file) }
        do {
            try directory.synchronize()
        } catch {
            // The name may lead to the old file again after a power cut: nothing more may be written.
            stopWriting(after: error)
            throw .system(error)
        }
        compactionPutOff.withLock { $0 = nil }
        try withLockedState { (state) throws(TokenStorageError) in
            state = written
            state.seen = expected
            try advanceAnchor(&state)
        }
        try? directory.remove(TornTail.name(for: location.name))
        return damaged
    }

    /// Notifies the readers of the old file to look at the path. Losing the notice to a crash does no harm.
    private func announceReplacement(in file: any DiskFile) throws(TokenStorageError) {
        try withLockedState { (state) throws(TokenStorageError) in
            guard state.tail + Frame.overhead <= state.size else { return }
            let sealed = try codec.seal(
                FrameDraft(type: .superseded), generation: state.sequence, groupStart: state.tail,
                previous: state.chain, endsCommit: true)
            let tail = state.tail
            try onDisk { () throws(SystemFailure) in try file.write(sealed.bytes, at: tail) }
            try loader.apply(
                ScannedFrame(offset: tail, header: sealed.header, chain: sealed.chain), to: &state)
            state.trailer = Array(sealed.bytes.suffix(Frame.checksumLength))
        }
    }

    /// Writes keybag, genesis, live frames, a checkpoint and the zeros behind them.
    private func write(
        _ old: LogState, to fresh: any DiskFile, progress: ((Int, Int) -> Void)?, resealing: Resealing?
    ) throws(TokenStorageError) -> (state: LogState, damaged: Int) {
        let keybag = try currentKeybagCopy(in: old).bytes
        let epoch = Epoch.next(after: old.epoch)
        // Frames that an index block hides must not be lost with the old file.
        var walked = old
        if !old.isWalked { try loader.rebuildIndex(of: &walked) }
        var ancestry = try loader.ancestry(of: old)
        ancestry.append(walked.trail)
        var builder = try LogBuilder(
            file: fresh, codec: codec, tailBound: tailBound, epoch: epoch, baseSequence: old.sequence,
            keybagCopy: keybag, keybag: old.keybag, ancestry: ancestry)
        let kept = try keptValues(in: old)
        let values = try usingIndex(of: &walked) { (index) throws(TokenStorageError) in
            try index.valuesByOffset(keeping: kept)
        }
        var scanner = LogScanner(file: old.file, codec: codec, chunk: 256 << 10)
        var damaged = 0
        for (position, value) in values.enumerated() {
            do throws(TokenStorageError) {
                try builder.copy(value, from: &scanner, resealing: resealing)
            } catch {
                // A damaged replaced value does not keep the rest from moving.
                guard error.code == .corrupt, !value.isNewest else { throw error }
                damaged += 1
            }
            if position.isMultiple(of: 1_024) { progress?(position, values.count) }
        }
        progress?(values.count, values.count)
        return (try builder.finish(), damaged)
    }
}

extension Epoch {
    /// Returns the epoch of the log that follows `epoch`.
    static func next(after epoch: Epoch) -> Epoch {
        Epoch(number: epoch.number + 1, identifier: .random())
    }
}
