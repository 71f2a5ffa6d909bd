internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// What holds the keys of a vault whose log names another keybag.
protocol KeybagOpener: AnyObject, Sendable {
    /// Opens the keybag in use, and tells the log. Throws the reason that its keys are not held.
    func openKeybagInUse() throws(TokenStorageError)
}

struct KeybagOpenerReference {
    weak var opener: (any KeybagOpener)?
}

// The check of the keybag in use, before anything is answered from its file or written to it.
extension VaultLog {
    /// The keybag in use.
    var keybagRecord: KeybagRecord { state.withLock { $0.keybag } }

    /// Takes note of `keybag`, which is under the roots of `succession` and was just opened. Throws `forked` where this
    /// device knows roots of the vault that these do not follow. Throws `locked` where other keys replaced these
    /// meanwhile. Returns whether the keybag is in use.
    @discardableResult
    func noteOpening(
        under succession: Succession, of keybag: KeybagRecord
    ) throws(TokenStorageError) -> Bool {
        try withLockedState { (state) throws(TokenStorageError) in
            // A writer has already checked the anchor. Outside a write, another process may have named other
            // roots since.
            if isWriting.withLock({ $0 }) == 0, let anchored = try anchor.read(),
                state.seen.map({ !$0.hasSameRoots(as: anchored) }) ?? true
            {
                try reload(&state)
            }
            let isInUse = state.keybag == keybag
            let known = state.knownRoots
            guard succession.follows(known) else {
                throw isInUse
                    ? .file(.forked, .ancestry(.unrelatedKeys)) : .file(.locked, .changedMeanwhile(.keys))
            }
            guard isInUse else { return false }
            // A change under way has reported the names of the next keybag, and its commit takes them to the
            // anchor.
            guard comingKeybag.withLock({ $0 == nil || $0 == keybag }) else { return true }
            anchor.use(succession, of: keybag)
            try noteReading(&state)
            guard succession.follows(state.knownRoots) else {
                throw .file(.locked, .changedMeanwhile(.keys))
            }
            return true
        }
    }

    /// Returns whether the keys of `keybag` were checked: the file of another one counts for nothing yet.
    func isChecked(_ keybag: KeybagRecord) -> Bool {
        ring.isOf(keybag) || comingKeybag.withLock { $0 == keybag }
    }

    /// Opens the keybag in use, as often as others replace it meanwhile. Throws the reason that its keys are not held, and
    /// `timedOut`.
    func checkKeybag() throws(TokenStorageError) {
        let deadline = Deadline(after: lockTimeout)
        while !isChecked(keybagRecord) {
            guard let opener = keybagOpener.withLock({ $0.opener }) else { throw .file(.closed) }
            try opener.openKeybagInUse()
            guard !isChecked(keybagRecord) else { return }
            if deadline.hasPassed { throw .file(.timedOut, .deadline(.keybagChanges)) }
        }
    }

    /// Throws `rolledBack` unless each keybag that `frames` name is a later one than the one before. A holder of the log key
    /// can name an earlier keybag, which the same keys open.
    func requireLaterKeybags(
        _ frames: [[ScannedFrame]], than keybag: KeybagRecord, in file: any DiskFile
    ) throws(TokenStorageError) {
        var last = keybag.generation
        for frame in frames.joined() where frame.header.type == RecordType.keybag.rawValue {
            let next = try loader.keybag(of: frame, file: file).generation
            guard next > last else { throw .file(.rolledBack) }
            last = next
        }
    }
}

// The keybag as the log names it, and its changes.
extension VaultLog {
    /// Returns the copy of the keybag that the log names. Throws `corrupt` when neither copy is the named
    /// one.
    func currentKeybagCopy(in state: LogState) throws(TokenStorageError) -> KeybagCopy {
        try currentKeybagCopy(in: state, among: try KeybagCopies(reading: state.file))
    }

    private func currentKeybagCopy(
        in state: LogState, among copies: KeybagCopies
    ) throws(TokenStorageError) -> KeybagCopy {
        guard let named = copies.whole.first(where: { $0.isNamed(by: state.keybag) }) else {
            throw .file(.corrupt, .damaged(.keybagInUse))
        }
        return named
    }

    /// Returns the copy of the keybag in use, read without the vault's lock. A change by another thread or
    /// process may replace both copies meanwhile. The log names the new copy by then, so the log and the
    /// copies are read again. Throws `corrupt` when neither copy is in use.
    func readKeybagInUse() throws(TokenStorageError) -> KeybagCopy {
        var looked = state.withLock { $0 }
        while true {
            do throws(TokenStorageError) {
                return try currentKeybagCopy(in: looked)
            } catch {
                guard error.code == .corrupt else { throw error }
                let now = try withFreshState { $0 }
                guard now.keybag != looked.keybag || now.identity != looked.identity else { throw error }
                looked = now
            }
        }
    }

    /// Replaces the keybag. `change` makes the new copy from the current one, under the lock.
    ///
    /// The spare copy is written and synced first, then the log names it, then the other copy follows. A
    /// crash at any point leaves a copy that the log names.
    func replaceKeybag(
        _ change: (Keybag) throws(TokenStorageError) -> [UInt8]
    ) throws(TokenStorageError) {
        try whileWriting { file throws(TokenStorageError) in
            let copies = try KeybagCopies(reading: file)
            let current = try currentKeybagCopy(in: state.withLock { $0 }, among: copies)
            // The spare is the copy that is not in use; if both are, the second.
            let spare = 1 - current.index
            let fresh = try change(current.keybag)
            let generation = current.keybag.generation + 1
            let record = KeybagRecord(generation: generation, digest: Keybag.digest(of: fresh))
            comingKeybag.withLock { $0 = record }
            do throws(TokenStorageError) {
                try writeKeybag(fresh, copy: spare, to: file)
                try name(record, in: file)
            } catch {
                if error.code != .outcomeUnknown {
                    try restoreKeybag(copies.copies[spare].bytes, copy: spare, in: file, after: error)
                }
                throw error
            }
            // The change has happened. A later unlock repairs a copy that cannot be written now.
            try? writeKeybag(fresh, copy: 1 - spare, to: state.withLock { $0.file })
        }
    }

    /// Undoes a failed write or sync of a copy, whose bytes may be in the file, on the disk, both or neither.
    /// The previous bytes are put back and synced: then the change did not happen. If that fails too, the
    /// outcome is unknown, and this process writes no more.
    private func restoreKeybag(
        _ former: [UInt8], copy: Int, in file: any DiskFile, after failure: TokenStorageError
    ) throws(TokenStorageError) {
        do throws(TokenStorageError) {
            try writeKeybag(former, copy: copy, to: file)
        } catch {
            let reason = TokenStorageError.file(.readOnly, .keybagNotWritten(failure.reason))
            stop.withLock { $0 = WritingStop(reason) }
            throw .file(.outcomeUnknown, .unknownOutcome(failure.reason))
        }
    }

    /// Makes both copies the one that the log names. Returns whether a copy was not a crash's remainder: the
    /// copy before the one in use, or a newer one that was never acknowledged.
    func healKeybag() throws(TokenStorageError) -> Bool {
        try whileWriting { file throws(TokenStorageError) in
            let copies = try KeybagCopies(reading: file)
            let current = try currentKeybagCopy(in: state.withLock { $0 }, among: copies).bytes
            let record = keybagRecord
            var wasDamaged = false
            for (index, copy) in copies.copies.enumerated() where copy.bytes != current {
                let keybag = try? copy.keybag.get()
                let isInnocent =
                    keybag?.vault == codec.vault
                    && (keybag?.generation).map { $0 + 1 == record.generation || $0 == record.generation + 1 }
                        ?? false
                if !isInnocent { wasDamaged = true }
                try writeKeybag(current, copy: index, to: file)
            }
            return wasDamaged
        }
    }

    private func name(_ record: KeybagRecord, in file: any DiskFile) throws(TokenStorageError) {
        var group = LogGroup(after: self)
        let body = try codec.sealControl(
            record.encoded(), type: .keybag, generation: group.nextSequence)
        _ = try group.add([FrameDraft(type: .keybag, body: body)])
        try append(&group, to: file)
    }

    private func writeKeybag(
        _ bytes: [UInt8], copy: Int, to file: any DiskFile
    ) throws(TokenStorageError) {
        try onDisk { () throws(SystemFailure) in
            try file.write(bytes, at: copy * VaultFormat.keybagLength)
            try file.synchronize()
        }
    }
}
