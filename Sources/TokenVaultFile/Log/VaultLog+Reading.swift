internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

// Reading moves the anchor too, so that an older file is noticed also where nothing is written.
extension VaultLog {
    /// Returns whether this log is known to have the commit of `anchored` in its past. Either it was compared
    /// with that before, or a commit that was read since is the anchor's.
    func descends(_ state: inout LogState, from anchored: AnchorSlot?) -> Bool {
        guard let anchored, anchored != state.seen else { return true }
        let commit = Ancestry.Commit(sequence: anchored.sequence, head: anchored.head)
        guard anchored.epoch == state.epoch,
            anchored.head == state.head || state.trail.contains(commit)
        else { return false }
        state.seen = anchored
        return true
    }

    /// Moves the anchor on to the state that `state` has come to by reading, unless a writer has. While a
    /// writer writes, or when the anchor cannot be moved, the next call tries again. Syncs nothing, unless a
    /// program of this device died before it synced.
    ///
    /// Throws `forked` or `rolledBack` when the anchor says meanwhile that this device has seen another file. A file that
    /// was just opened at the path, `isFresh`, is not looked for there again.
    func noteReading(_ state: inout LogState, isFresh: Bool = false) throws(TokenStorageError) {
        guard location.state != nil, location.readOnlyReason != .requested else { return }
        if let seen = state.seen, anchor.isCovered(state, by: seen) { return state.isReadingDue = false }
        // Another keybag may be under former roots. The file does not count until the keys of its keybag are
        // checked.
        guard anchor.hasOpened(state.keybag) else { return }
        state.isReadingDue = true
        guard isWriting.withLock({ $0 }) == 0 else { return }
        let anchored = try anchor.read()
        if let anchored {
            // The anchor is further than this log is known here: another process writes, or moved the log to
            // a new file.
            let isBehind = anchored.epoch == state.epoch && anchored.sequence > state.sequence
            guard !isBehind, !anchored.epoch.isOfAnother(than: state.epoch) else { return }
            guard descends(&state, from: anchored) else {
                // The file at the path is compared with the anchor.
                return try reload(&state)
            }
            if anchor.isCovered(state, by: anchored) { return state.isReadingDue = false }
        }
        // With another file at the path, this file may be older than what this device has read there.
        if isOtherFileInPlace(of: state) {
            guard isFresh else { return try reload(&state) }
            return
        }
        guard let lock = try? lockAgainstWriters(state) else { return }
        defer { lock.release() }
        guard makeDurable(lock.file, state, anchored) else { return }
        guard let moved = anchor.advance(from: anchored, toReadingOf: state) else { return }
        state.seen = moved
        state.isAnchored = true
        state.isReadingDue = false
    }

    /// Returns whether the writes that a program of this device may have left without a sync are durable now.
    /// A program that died between writing and anchoring leaves such bytes, or such a name. Writes of another
    /// device are not lost with this one.
    private func makeDurable(
        _ file: any DiskFile, _ state: LogState, _ anchored: AnchorSlot?
    ) -> Bool {
        guard location.readOnlyReason == nil else { return true }
        let isNew = anchored == nil || anchored?.coming == state.epoch
        guard isNew || anchored?.file == state.identity else { return true }
        do {
            try file.synchronize()
            if isNew { try location.directory.synchronize() }
            return true
        } catch {
            return false
        }
    }

    /// Returns a lock that keeps writers away from the file of `state`; `nil` if that file is not in place or
    /// has changed since. The lock is of a separately opened file. Locking the one in use again would change
    /// a lock that a writer of this process may have.
    private func lockAgainstWriters(_ state: LogState) throws(TokenStorageError) -> WriterLock? {
        let opened = try VaultFile.open(location, for: .use)
        let file = opened.file
        guard opened.attributes.identity == state.identity,
            try onDisk({ () throws(SystemFailure) in try file.tryLock(.shared) })
        else { return nil }
        var isKept = false
        defer { if !isKept { file.unlock() } }
        let scanner = LogScanner(file: file, codec: codec, chunk: 0)
        if try scanner.trailer(before: state.tail) == state.trailer { isKept = try loader.isAtPath(file) }
        return isKept ? WriterLock(file: file) : nil
    }
}
