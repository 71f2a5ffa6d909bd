internal import TokenVaultCore
internal import TokenVaultPlatform

// The check that a log descends from what this device has seen of the vault.
extension LogLoader {
    /// Throws unless the log at `state` has the commit that `anchored` names in its past. Throws `rolledBack`
    /// where the file is older, `forked` where another copy was written to meanwhile, `corrupt` where a
    /// durable place failed. `metHead` says whether a frame of the log has the anchor's chain value.
    func check(
        _ state: inout LogState, against anchored: AnchorSlot, metHead: Bool, stop: ScanEnd.Stop
    ) throws(TokenStorageError) {
        let isSameEpoch = state.epoch == anchored.epoch
        if isSameEpoch ? metHead : try descends(state, from: anchored) {
            // The chain shows as much; an earlier keybag is never the one in use.
            guard state.keybag.generation >= anchored.keybagGeneration else { throw .file(.rolledBack) }
            state.seen = anchored
            state.isAnchored = true
            return
        }
        // Bytes that do not check in a place that was durable are damage, not an older copy.
        if isSameEpoch, case .failing(let place) = stop { throw .damage(at: place, .frame) }
        throw isOlder(state, than: anchored) ? .file(.rolledBack) : .forked
    }

    /// Returns whether a log that does not descend from the anchored commit ends before it, as far as its
    /// numbers show.
    private func isOlder(_ state: LogState, than anchored: AnchorSlot) -> Bool {
        if state.epoch.number < anchored.epoch.number { return state.sequence <= anchored.sequence }
        guard state.epoch.number == anchored.epoch.number else { return false }
        return state.sequence < anchored.sequence || !state.isBeginningWhole
    }

    /// Returns whether a log of another epoch than the anchor's has the anchored commit in its past.
    private func descends(
        _ state: LogState, from anchored: AnchorSlot
    ) throws(TokenStorageError) -> Bool {
        // A copy that was cut off inside its initial contents lacks items of its past.
        guard state.isBeginningWhole else { return false }
        // A restore began here, and a crash kept the anchor from recording its end.
        if state.epoch == anchored.coming { return true }
        let commit = Ancestry.Commit(sequence: anchored.sequence, head: anchored.head)
        let ancestry = try ancestry(of: state)
        if ancestry.contains(commit) { return true }
        if ancestry.mayHaveLeftOut(commit) { throw .forkedBeyondMemory }
        return false
    }

    /// Returns the commits before the epoch of the log at `state`. Throws `corrupt` where the frames that say so are no
    /// longer those that were checked.
    func ancestry(of state: LogState) throws(TokenStorageError) -> Ancestry {
        let file = state.file
        var scanner = LogScanner(file: file, codec: codec, chunk: 4 << 10)
        guard let first = try scanner.frame(at: VaultFormat.logStart) else {
            throw .damage(at: VaultFormat.logStart, .noFirstFrame)
        }
        let second = try ancestryFrame(behind: first, &scanner)
        guard (second ?? first).chain == state.frontChain else {
            throw .damage(at: VaultFormat.logStart, .frameOutOfPlace)
        }
        guard let second else { return Ancestry() }
        guard let ancestry = try? Ancestry(decoding: try control(of: second, file: file)) else {
            throw .damage(at: second.offset, .ancestryRecord)
        }
        return ancestry
    }

    /// Returns the frame that lists earlier epochs, right behind the first frame; `nil` where there is none.
    func ancestryFrame(
        behind first: ScannedFrame, _ scanner: inout LogScanner
    ) throws(TokenStorageError) -> ScannedFrame? {
        guard let second = try scanner.frame(at: first.end), second.header.previous == first.chain,
            second.header.type == RecordType.ancestry.rawValue
        else { return nil }
        return second
    }

    /// Returns all commits of the log at `state`: those that it descends from, and its own.
    func history(of state: LogState) throws(TokenStorageError) -> Ancestry {
        var history = try ancestry(of: state)
        var scanner = LogScanner(file: state.file, codec: codec, chunk: 256 << 10)
        var chain = FrameCodec.chainStart
        try scanner.walk(from: VaultFormat.logStart, to: state.tail, previous: chain) {
            frame throws(TokenStorageError) in
            chain = frame.chain
            if let commit = frame.commit { history.append(commit) }
        }
        guard chain == state.chain else { throw .damage(at: state.tail, .frameOutOfPlace) }
        return history
    }
}

extension ScannedFrame {
    /// The commit that ends with this frame; `nil` for a frame that ends none, and for a notice of the file's
    /// replacement. Also `nil` for frames written together with the file, which were nowhere before all of it
    /// was.
    var commit: Ancestry.Commit? {
        guard header.endsCommit, header.groupStart > UInt64(VaultFormat.logStart),
            header.type != RecordType.superseded.rawValue
        else { return nil }
        return Ancestry.Commit(sequence: header.generation, head: chain)
    }
}

extension TokenStorageError.Code {
    /// Whether a file that is being written or replaced, or that was just replaced, may have given this
    /// error. A second look under the lock decides.
    var mayBeOfOldFile: Bool { self == .corrupt || self == .rolledBack || self == .forked }
}

extension TokenStorageError {
    /// The error for a file that lacks what this device has seen, and is not older.
    static let forked = file(.forked)

    /// The error for a file that no longer shows whether it has what this device has seen.
    static let forkedBeyondMemory = file(.forked, .forkedBeyondMemory(commits: Ancestry.bound))
}
