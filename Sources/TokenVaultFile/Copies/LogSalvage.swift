internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Walks along a damaged log and finds the newest whole value of each item.
///
/// The order of commits decides, not the order of places. An old frame can be put behind a new one without a key, and
/// brings no replaced value back. A frame of another file of the vault authenticates as well. So where the chain has a
/// loss, an item counts as doubtful, unless its frame is linked to what this device has seen.
struct LogSalvage {
    struct Item {
        /// The newest frame of the item, whole or not.
        var generation: UInt64
        var offset: Int
        var isDeletion: Bool
        var isWhole: Bool
        /// The run of the newest frame.
        var run: Int
        /// The newest whole value, and its run.
        var best: (entry: IndexEntry, run: Int)?
    }

    let file: any DiskFile
    let codec: FrameCodec
    var report = SalvageReport(
        items: 0, mayBeOlder: 0, itemsLost: 0, bytesSkipped: 0, losses: [], notes: [])
    /// The extent of the log, as far as its frames show.
    private(set) var reach = HighWaterMark()
    /// The keybag that the newest record names.
    private(set) var named: KeybagRecord?
    /// The commits that were found, and the earlier ones that the file lists.
    private(set) var history = Ancestry()

    var items: [ItemIdentifier: Item] = [:]
    var epoch: Epoch?
    /// The frames that were found, up to two: the first two may say which file this is.
    private var found = 0
    /// Whether a commit was found that was written after the file got its name.
    private(set) var hasLaterCommit = false
    var chain: Digest? = FrameCodec.chainStart
    /// The records of frames that were written together: complete commits, and a commit whose end has not
    /// come yet.
    var group: [Record] = []
    var pending: [Record] = []
    var groupStart: UInt64 = 0
    /// The newest commit that is complete.
    var completeSequence: UInt64 = 0
    var gap: Range<Int>?
    var suspect: Suspect?
    var endOfFrames = VaultFormat.logStart
    /// The place before which frames may have been replaced or deleted by lost ones.
    var doubtEnd = 0
    /// The number of the run of frames that is read: each break of the chain begins another one.
    private var run = 0
    /// The runs that are known to be of this file.
    private var runs = KnownRuns()
    /// The losses that leave no doubt as long as the frames around them are this file's.
    private var gapsOfFirst: [(end: Int, next: Int)] = []

    /// Whether the frames that were written with the file are items, each once: it was written without replaced values.
    private(set) var hasEachItemOnce = false
    private let keepsNothing: (KeybagRecord) -> Bool

    /// Prepares to read `file`. `keepsNothing` says whether a record names a whole keybag that keeps no replaced values.
    init(file: any DiskFile, codec: FrameCodec, keepsNothing: @escaping (KeybagRecord) -> Bool) {
        self.file = file
        self.codec = codec
        self.keepsNothing = keepsNothing
    }

    /// Reads the whole file. `anchored` is the last state that this device has seen of the vault.
    mutating func read(
        anchored: AnchorSlot?, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) {
        var finder = try FrameFinder(file: file, codec: codec)
        var contents = LogScanner(file: file, codec: codec, chunk: 1 << 20)
        try finder.forEach(progress: progress) { (finding) throws(TokenStorageError) in
            switch finding {
            case .gap(let range): gap = range
            case .frame(let frame):
                let isIntact = try contents.isWhole(frame)
                let isWhole = isIntact ? true : try contents.hasWholeContents(frame)
                try take(frame, Record(frame, isWhole: isWhole, isIntact: isIntact))
                if let anchored, frame.chain == anchored.head { runs.ofHead = run }
            }
        }
        runs.isFirstKnown = epoch != nil && epoch == anchored?.epoch
        try end(anchored)
        if let anchored { reach.include(anchored) }
    }

    private mutating func take(_ frame: ScannedFrame, _ record: Record) throws(TokenStorageError) {
        // The frame was written when all before it was durable: no crash explains the missing frames.
        if let suspect, frame.header.groupStart > UInt64(suspect.offset) { dismissSuspect() }
        if frame.header.previous != chain {
            run += 1
            noteBreak(before: frame)
        } else if let gap {
            report.bytesSkipped += gap.count
            report.notes.append("\(gap.count) stray bytes at byte \(gap.lowerBound)")
        }
        gap = nil
        var record = record
        record.keybag = try readControl(frame, isWhole: record.isWhole)
        chain = frame.chain
        endOfFrames = frame.end
        record.beginsCommit = pending.isEmpty
        record.run = run
        pending.append(record)
        guard frame.header.endsCommit else { return }
        // All frames before a group were durable when the group was written.
        if groupStart != frame.header.groupStart, suspect == nil { flush() }
        groupStart = frame.header.groupStart
        group += pending
        pending.removeAll(keepingCapacity: true)
    }

    /// Notes that frames are missing in front of `frame`: lost, or never written by a write that a crash cut
    /// short.
    private mutating func noteBreak(before frame: ScannedFrame) {
        let place = gap ?? frame.offset..<frame.offset
        let loss = Loss(
            range: place, what: gap == nil ? "frames are missing" : "bytes that are no frame",
            // The frames written together with the file are no deletions.
            isDoubtful: !hasEachItemOnce || groupStart > UInt64(VaultFormat.logStart)
                || frame.header.groupStart != UInt64(VaultFormat.logStart),
            next: run)
        let mayBeTorn = gap != nil && frame.header.groupStart <= UInt64(place.lowerBound)
        guard suspect != nil || mayBeTorn else {
            // A commit that lost its end: its frames are better than nothing, and the loss is reported.
            flushAll()
            return lose(loss)
        }
        if suspect == nil { suspect = Suspect(offset: place.lowerBound, cut: group.count, losses: []) }
        suspect?.losses.append(loss)
        group += pending
        pending.removeAll(keepingCapacity: true)
    }

    /// Counts a supposed write that a crash cut short as a loss.
    mutating func dismissSuspect() {
        flushAll()
        for loss in suspect?.losses ?? [] { lose(loss) }
        suspect = nil
    }

    /// Takes what a control record says of the file: that of the first frame, and that of the one behind it. Anywhere else
    /// they are of another file. Returns the keybag that the record names.
    private mutating func readControl(
        _ frame: ScannedFrame, isWhole: Bool
    ) throws(TokenStorageError) -> KeybagRecord? {
        let isNext = frame.header.previous == chain
        defer { found = min(found + 1, 2) }
        try reach.include(frame, file, codec)
        reach.include(sequence: frame.header.generation)
        let type = RecordType(rawValue: frame.header.type)
        if type == nil, frame.header.type < RecordType.firstIgnorable {
            throw .file(.unsupportedFormat, .newerFormat(.record))
        }
        guard type == .genesis || type == .keybag || type == .ancestry else { return nil }
        guard isWhole, let payload = try contents(of: frame) else { return nil }
        switch type {
        case .genesis where found == 0 && isNext:
            guard let record = try? GenesisRecord(decoding: payload) else { return nil }
            epoch = record.epoch
            hasEachItemOnce = keepsNothing(record.keybag)
            return record.keybag
        case .ancestry where found == 1 && isNext && epoch != nil:
            if let past = try? Ancestry(decoding: payload) { history = past }
            return nil
        case .keybag: return try? KeybagRecord(decoding: payload)
        default: return nil
        }
    }

    private func contents(of frame: ScannedFrame) throws(TokenStorageError) -> [UInt8]? {
        let file = file
        let sealed = try onDisk { () throws(SystemFailure) in
            try file.read(frame.header.bodyLength, at: frame.offset + Frame.contentOffset)
        }
        return try codec.openControl(sealed, header: frame.header)
    }

    /// Applies the records of the group.
    mutating func flush() {
        for record in group {
            completeSequence = max(completeSequence, record.entry.generation)
            if let commit = record.commit {
                history.append(commit)
                hasLaterCommit = true
            }
            if let keybag = record.keybag, keybag.generation > named?.generation ?? 0 {
                named = keybag
            }
            if let item = record.item { apply(record, to: item) }
            if record.isControl, !record.isWhole {
                let place = record.entry.offset..<record.entry.offset
                lose(Loss(range: place, what: "a damaged control record", isDoubtful: false))
            }
        }
        group.removeAll(keepingCapacity: true)
    }

    mutating func flushAll() {
        group += pending
        pending.removeAll(keepingCapacity: true)
        flush()
    }

    private mutating func apply(_ record: Record, to name: ItemIdentifier) {
        let entry = record.entry
        var item =
            items[name] ?? Item(generation: 0, offset: 0, isDeletion: false, isWhole: false, run: 0)
        if entry.generation >= item.generation {
            item.generation = entry.generation
            item.offset = entry.offset
            item.isDeletion = record.isDeletion
            item.isWhole = record.isWhole
            item.run = record.run
        }
        if !record.isDeletion, record.isWhole, entry.generation >= item.best?.entry.generation ?? 0 {
            item.best = (entry, record.run)
        }
        items[name] = item
    }

    mutating func lose(_ loss: Loss) {
        report.losses.append(
            SalvageReport.Loss(
                offset: loss.range.lowerBound, length: loss.range.count, description: loss.what))
        report.bytesSkipped += loss.range.count
        if loss.isDoubtful { doubtEnd = max(doubtEnd, loss.range.upperBound) }
        guard let next = loss.next else { return }
        runs.areAllKnown = false
        gapsOfFirst.append((loss.range.upperBound, next))
    }

    /// Returns the items to save, in the order of their places. Leaves out those that `isOpened` has no keys for.
    mutating func takeItems(
        where isOpened: (IndexEntry) -> Bool
    ) -> [(ItemIdentifier, IndexEntry)] {
        for gap in gapsOfFirst where !runs.contain(0) || !runs.contain(gap.next) {
            doubtEnd = max(doubtEnd, gap.end)
        }
        var saved: [(ItemIdentifier, IndexEntry)] = []
        var withoutKeys = 0
        for (name, item) in items {
            if item.isDeletion {
                // The deletion may be another file's.
                if item.best != nil, !runs.contain(item.run) { report.itemsLost += 1 }
                continue
            }
            if !item.isWhole {
                report.losses.append(
                    SalvageReport.Loss(offset: item.offset, length: 0, description: "a damaged item"))
            }
            guard let best = item.best, isOpened(best.entry) else {
                report.itemsLost += 1
                if item.best != nil { withoutKeys += 1 }
                continue
            }
            if !item.isWhole || best.entry.offset < doubtEnd || !runs.contain(best.run) {
                report.mayBeOlder += 1
            }
            saved.append((name, best.entry))
        }
        items = [:]
        if withoutKeys > 0 {
            report.losses.append(
                SalvageReport.Loss(
                    offset: 0, length: 0,
                    description: "items are sealed under keys that no slot opens: \(withoutKeys)"))
        }
        report.items = saved.count
        report.losses.sort { $0.offset < $1.offset }
        return saved.sorted { $0.1.offset < $1.1.offset }
    }
}

extension LogScanner {
    /// Returns whether a frame's contents match its header.
    mutating func hasWholeContents(_ frame: ScannedFrame) throws(TokenStorageError) -> Bool {
        let length = frame.header.metadataLength + frame.header.bodyLength
        guard try fill(frame.offset + Frame.contentOffset, length),
            let content = bytes(at: frame.offset + Frame.contentOffset, length)
        else { return false }
        return Digest(of: content) == frame.header.contentDigest
    }
}
