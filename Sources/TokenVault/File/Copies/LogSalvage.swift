internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Goes along a damaged log and decides what its items are: of each the newest value that is whole.
///
/// The order of commits decides, not that of places: whoever puts an old frame behind a new one, which takes no
/// key, brings nothing back.
struct LogSalvage {
    private struct Item {
        /// The newest frame of the item, whole or not.
        var generation: UInt64
        var offset: Int
        var isDeletion: Bool
        var isWhole: Bool
        /// The newest value that is whole.
        var best: IndexEntry?
    }

    let file: any DiskFile
    let codec: FrameCodec
    private(set) var report = SalvageReport(
        items: 0, mayBeOlder: 0, itemsLost: 0, bytesSkipped: 0, losses: [], notes: [])
    /// How far the log came, as far as its frames tell.
    private(set) var reach = LogReach()
    /// The keybag that the last record found names.
    private(set) var named: KeybagRecord?

    private var items: [ItemIdentifier: Item] = [:]
    private var epoch: Epoch?
    private var chain: Digest? = FrameCodec.chainStart
    /// Frames of a commit whose end has not come yet.
    private var pending: [(frame: ScannedFrame, isWhole: Bool)] = []
    /// The newest commit that is complete.
    private var completeSequence: UInt64 = 0
    private var gap: Range<Int>?
    /// A frame from before here may have been replaced or deleted by what was lost.
    private var doubtEnd = 0

    init(file: any DiskFile, codec: FrameCodec) {
        self.file = file
        self.codec = codec
    }

    /// Reads the whole file. `anchored` is how far this device has seen the vault go.
    mutating func read(
        anchored: AnchorSlot?, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) {
        var finder = try FrameFinder(file: file, codec: codec)
        var contents = LogScanner(file: file, codec: codec, chunk: 1 << 20)
        try finder.forEach(progress: progress) { (finding) throws(TokenStorageError) in
            switch finding {
            case .gap(let range): gap = range
            case .frame(let frame): try take(frame, isWhole: try contents.hasWholeContents(frame))
            }
        }
        try end(anchored)
        if let anchored { reach.include(anchored) }
    }

    private mutating func take(_ frame: ScannedFrame, isWhole: Bool) throws(TokenStorageError) {
        if frame.header.previous != chain {
            // A commit that lost its end: its frames are better than nothing, and the loss is told.
            flush()
            lose(
                gap ?? frame.offset..<frame.offset,
                gap == nil ? "frames are missing" : "bytes that are no frame",
                // What was written together with the file are items, each once, and no deletions.
                isDoubtful: frame.header.groupStart != UInt64(VaultFormat.logStart))
        } else if let gap {
            report.bytesSkipped += gap.count
            report.notes.append("\(gap.count) bytes that belong to nothing, at byte \(gap.lowerBound)")
        }
        gap = nil
        chain = frame.chain
        pending.append((frame, isWhole))
        try readControl(frame, isWhole: isWhole)
        if frame.header.endsCommit { flush() }
    }

    private mutating func readControl(_ frame: ScannedFrame, isWhole: Bool) throws(TokenStorageError) {
        try reach.include(frame, file, codec)
        reach.include(sequence: frame.header.generation)
        let type = RecordType(rawValue: frame.header.type)
        if type == nil, frame.header.type < RecordType.firstIgnorable {
            throw .file(.unsupportedFormat, underlying: "an unknown record")
        }
        guard type == .genesis || type == .keybag else { return }
        guard isWhole, let payload = try contents(of: frame) else {
            return lose(frame.offset..<frame.offset, "a damaged record of the keybag", isDoubtful: false)
        }
        if type == .genesis, let record = try? GenesisRecord(decoding: payload) {
            epoch = record.epoch
            named = record.keybag
        } else if let record = try? KeybagRecord(decoding: payload) {
            named = record
        }
    }

    private func contents(of frame: ScannedFrame) throws(TokenStorageError) -> [UInt8]? {
        let file = file
        let sealed = try onDisk { () throws(SystemFailure) in
            try file.read(frame.header.bodyLength, at: frame.offset + Frame.contentOffset)
        }
        return try codec.openControl(sealed, header: frame.header)
    }

    /// Takes the frames of a commit for what they say.
    private mutating func flush() {
        for (frame, isWhole) in pending {
            completeSequence = max(completeSequence, frame.header.generation)
            if frame.header.isItem { apply(frame, isWhole: isWhole) }
        }
        pending = []
    }

    private mutating func apply(_ frame: ScannedFrame, isWhole: Bool) {
        let header = frame.header
        let isDeletion = header.type == RecordType.deletion.rawValue
        var item =
            items[header.item]
            ?? Item(generation: 0, offset: 0, isDeletion: false, isWhole: false, best: nil)
        if header.generation >= item.generation {
            item.generation = header.generation
            item.offset = frame.offset
            item.isDeletion = isDeletion
            item.isWhole = isWhole
        }
        if !isDeletion, isWhole, header.generation >= item.best?.generation ?? 0 {
            item.best = IndexEntry(header, at: frame.offset)
        }
        items[header.item] = item
    }

    private mutating func lose(_ range: Range<Int>, _ what: String, isDoubtful: Bool) {
        report.losses.append(
            SalvageReport.Loss(offset: range.lowerBound, length: range.count, description: what))
        report.bytesSkipped += range.count
        if isDoubtful { doubtEnd = max(doubtEnd, range.upperBound) }
    }

    /// What stands at the end: a commit that a crash cut short is no loss, as nobody was told of it.
    private mutating func end(_ anchored: AnchorSlot?) throws(TokenStorageError) {
        let isOfAnchor = anchored.map { epoch == nil || $0.epoch == epoch } ?? false
        if let anchored, isOfAnchor, anchored.sequence > completeSequence {
            flush()
            let end = gap?.upperBound ?? Int.max
            lose(gap ?? end..<end, "the end of the log, which this device has seen", isDoubtful: true)
            doubtEnd = .max
        } else if let gap {
            do throws(TokenStorageError) {
                try TailClassifier(file: file, codec: codec).requireTorn(at: gap.lowerBound)
                report.notes.append("a commit that a crash cut short, at byte \(gap.lowerBound)")
            } catch {
                guard error.code == .corrupt else { throw error }
                flush()
                lose(gap, "bytes that are no frame", isDoubtful: true)
                doubtEnd = .max
            }
        } else if !pending.isEmpty {
            report.notes.append("a commit that a crash cut short, at byte \(pending[0].frame.offset)")
        }
        pending = []
        gap = nil
    }

    /// The items to save, in the order of their places.
    mutating func takeItems() -> [(ItemIdentifier, IndexEntry)] {
        var saved: [(ItemIdentifier, IndexEntry)] = []
        for (name, item) in items where !item.isDeletion {
            if !item.isWhole {
                report.losses.append(
                    SalvageReport.Loss(offset: item.offset, length: 0, description: "a damaged item"))
            }
            guard let best = item.best else {
                report.itemsLost += 1
                continue
            }
            if !item.isWhole || best.offset < doubtEnd { report.mayBeOlder += 1 }
            saved.append((name, best))
        }
        items = [:]
        report.items = saved.count
        report.losses.sort { $0.offset < $1.offset }
        return saved.sorted { $0.1.offset < $1.1.offset }
    }
}

extension LogScanner {
    /// Whether a frame's contents are those that its header tells of.
    mutating func hasWholeContents(_ frame: ScannedFrame) throws(TokenStorageError) -> Bool {
        let length = frame.header.metadataLength + frame.header.bodyLength
        guard try fill(frame.offset + Frame.contentOffset, length),
            let content = bytes(at: frame.offset + Frame.contentOffset, length)
        else { return false }
        return Digest(of: content) == frame.header.contentDigest
    }
}
