internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

// Reading all of a log on every processor, contents and all.
extension LogLoader {
    /// A log that was examined as a whole.
    struct Surveyed {
        let log: SurveyedLog
        /// The log's position. Its index is empty: `log` has the items.
        let state: LogState
    }

    /// Examines every frame of `file`, trusting no index block. The caller holds the lock of `file`, which is
    /// at the path. Throws as walking along it would: `corrupt` where a frame fails that no crash tore,
    /// `rolledBack`.
    func survey<Contents: ContentChecking & ~Copyable>(
        _ file: any DiskFile, checkingBy maker: @escaping @Sendable () -> Contents, _ progress: (Int) -> Void
    ) throws(TokenStorageError) -> Surveyed {
        let anchored = try anchor.read()
        var state = try beginning(of: file, try attributes(of: file))
        let isSameLife = anchored?.epoch == state.epoch
        let survey = LogSurvey(
            file, codec, from: VaultFormat.logStart, head: isSameLife ? anchored?.head : nil,
            checkingBy: maker)
        let found = try survey.run(expecting: expectedItems(in: state), progress)
        if found.isOutOfPlace { throw .damage(at: found.place, .frameOutOfPlace) }
        var log = found.log
        var stop = try self.stop(at: found.place, in: file)
        cutToLastCommit(&log, &stop, found.place)
        guard let last = log.last else { throw .damage(at: VaultFormat.logStart, .noFirstFrame) }
        try take(log, upTo: last, into: &state)
        if let anchored {
            try check(&state, against: anchored, metHead: log.head != nil, stop: stop)
        }
        try requireWholeBeginning(state, stop)
        let scanner = LogScanner(file: file, codec: codec, chunk: 64 << 10)
        if stop == .clean, try !scanner.isZeroToEnd(from: state.tail) { stop = .failing(at: state.tail) }
        if case .failing(let place) = stop {
            try TailClassifier(file: file, codec: codec).requireTorn(at: place)
        }
        return Surveyed(log: log, state: state)
    }

    /// Returns about how many items the file of `state` has, as its index says. Without one, as many small items as it has
    /// room for. Dead indexes of a large vault may take half of the file.
    private func expectedItems(in state: LogState) -> Int {
        let most = state.size / SurveyedLog.smallItem
        guard let index = try? presentIndex(in: state) else { return most }
        return min(most, index.summary.items + (state.size - index.last.end) / SurveyedLog.smallItem)
    }

    /// Returns the index block that the pointer leads to; `nil` where it leads to none.
    private func presentIndex(
        in state: LogState
    ) throws(TokenStorageError) -> (last: ScannedFrame, summary: IndexSummary)? {
        guard let offset = try pointedIndex(in: state.file) else { return nil }
        return try index(at: offset, in: state.file, state.size, epoch: state.epoch)
            .map { ($0.last, $0.block.summary) }
    }

    /// Returns the kind of stop at the place where the frames end.
    private func stop(at place: Int, in file: any DiskFile) throws(TokenStorageError) -> ScanEnd.Stop {
        let prefix = try onDisk { () throws(SystemFailure) in try file.read(Frame.prefixLength, at: place) }
        return isAllZero(prefix) ? .clean : .failing(at: place)
    }

    /// Keeps complete commits. Of the group written last, keeps those in front of the first frame that is not
    /// whole. Nothing behind the group says that its contents are durable.
    private func cutToLastCommit(_ log: inout SurveyedLog, _ stop: inout ScanEnd.Stop, _ place: Int) {
        if let begun = log.beginOfIncompleteCommit {
            // The place of the missing frame tells why it is missing.
            if stop == .clean { stop = .failing(at: place) }
            log.cut(at: begun)
        }
        if let torn = log.tornCommit {
            stop = .failing(at: torn.frame)
            log.cut(at: torn.begin)
        }
    }

    private func take(
        _ log: SurveyedLog, upTo last: SurveyedFrame, into state: inout LogState
    ) throws(TokenStorageError) {
        var scanner = LogScanner(file: state.file, codec: codec, chunk: 4 << 10)
        func scanned(_ frame: SurveyedFrame) throws(TokenStorageError) -> ScannedFrame {
            guard let found = try scanner.frame(at: frame.offset) else {
                throw .damage(at: frame.offset, .frame)
            }
            return found
        }
        for control in log.controls {
            switch RecordType(rawValue: control.type) {
            case .keybag: state.keybag = try keybag(of: try scanned(control), file: state.file)
            case .ancestry: state.takeAncestry(try scanned(control))
            case nil where control.type < RecordType.firstIgnorable:
                throw .file(.unsupportedFormat, .newerFormat(.record))
            default: break
            }
        }
        let newest = try scanned(last)
        state.chain = newest.chain
        state.isBeginningWhole =
            try log.lastCommit.map { (commit) throws(TokenStorageError) in
                try scanned(commit).header.groupStart > UInt64(VaultFormat.logStart)
            } ?? false
        state.tail = last.end
        state.trailer = try scanner.trailer(before: last.end)
        state.sequence = max(state.sequence, log.sequence)
        state.isSuperseded = last.type == RecordType.superseded.rawValue
        state.head = state.isSuperseded ? newest.header.previous : newest.chain
    }
}

extension SurveyedLog {
    /// The last frame that ends a commit; a notice of the file's replacement ends none.
    fileprivate var lastCommit: SurveyedFrame? {
        var last: SurveyedFrame?
        forEachReversed { frame in
            if frame.endsCommit, frame.type != RecordType.superseded.rawValue { last = frame }
            return last == nil
        }
        return last
    }

    /// The start of the frames behind the last complete commit; `nil` when there are none.
    fileprivate var beginOfIncompleteCommit: Int? {
        var begin: Int?
        forEachReversed { frame in
            if !frame.endsCommit { begin = frame.offset }
            return !frame.endsCommit
        }
        return begin
    }

    /// The first frame that is not whole of the group that was written last, and the start of its commit.
    fileprivate var tornCommit: (frame: Int, begin: Int)? {
        var torn: (frame: Int, begin: Int)?
        var isInGroup = true
        forEachReversed { frame in
            if frame.endsCommit, !isInGroup { return false }
            if frame.beginsGroup { isInGroup = false }
            if frame.faults.isTorn {
                torn = (frame.offset, frame.offset)
            } else if let found = torn, !frame.endsCommit, frame.end == found.begin {
                torn?.begin = frame.offset
            }
            return true
        }
        return torn
    }
}
