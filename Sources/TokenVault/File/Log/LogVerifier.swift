internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Looks at every byte of a vault and changes nothing: takes in the frames of a walk, and then looks at the rest. The
/// caller holds a lock that keeps writers away.
struct LogVerifier {
    private let file: any DiskFile
    private let codec: FrameCodec
    private let size: Int
    private let progress: ((Int, Int) -> Void)?
    private let scratch = Scratch()
    /// Where index blocks end.
    private var indexes: Set<Int> = []
    /// Frames that something is wrong with, as long as nobody knows whether they are in use.
    private var faulty: [(offset: Int, item: ItemIdentifier, type: UInt8, faults: FrameFaults)] = []
    private var report = VerificationReport(
        frames: 0, items: 0, checkedByDigestOnly: 0, bytes: 0, problems: [], notes: [])

    /// A verifier of `file`, which has `size` bytes.
    init(file: any DiskFile, size: Int, codec: FrameCodec, progress: ((Int, Int) -> Void)?) {
        self.file = file
        self.size = size
        self.codec = codec
        self.progress = progress
    }

    /// Takes in the next frame, all of which `inspection` looks at unless that was done ahead.
    mutating func add(_ frame: ScannedFrame, inspection: FrameInspection) throws(TokenStorageError) {
        let header = frame.header
        if report.frames.isMultiple(of: 1_024) { progress?(frame.offset, size) }
        report.frames += 1
        if header.type == RecordType.index.rawValue { indexes.insert(frame.offset) }
        var faults: FrameFaults
        if let known = frame.faults {
            faults = known
        } else {
            let file = file
            let bytes = try onDisk { () throws(SystemFailure) in
                try file.read(header.frameLength, at: frame.offset)
            }
            guard bytes.count == header.frameLength else { throw .damage(at: frame.offset, "the file ends") }
            faults = try inspection.faults(
                of: header, in: bytes, at: 0, offset: frame.offset, scratch: scratch)
        }
        if faults.remove(.notReadable) != nil { report.checkedByDigestOnly += 1 }
        if !faults.isEmpty { faulty.append((frame.offset, header.item, header.type, faults)) }
    }

    /// Verifies the rest of the file, and gives what was found in all of it. `named` is the keybag that the log names,
    /// `live` says whether a frame is an item's newest, and `end` is where the last complete commit ends.
    mutating func finish(
        named: KeybagRecord, live: LogIndex, end: Int
    ) throws(TokenStorageError) -> VerificationReport {
        report.bytes = size
        report.items = try live.figures().items
        try verifyKeybags(named: named)
        for frame in faulty {
            let isLive = try live.entry(of: frame.item)?.offset == frame.offset
            describe(frame.faults, at: frame.offset, type: RecordType(rawValue: frame.type), isLive: isLive)
        }
        try verifyPointer()
        try verifyTail(from: end, size: size)
        progress?(size, size)
        return report
    }

    private mutating func describe(_ faults: FrameFaults, at offset: Int, type: RecordType?, isLive: Bool) {
        if faults.contains(.trailer) { problem(offset, "a damaged frame's end") }
        if faults.contains(.digest) {
            // The value of an item that was replaced or deleted is overwritten on purpose.
            if type == .item, !isLive, faults.contains(.erased) { return }
            switch type {
            case .index, .indexPages: problem(offset, "a damaged index")
            default: problem(offset, isLive ? "a damaged item" : "a damaged value that is no longer in use")
            }
        } else if faults.contains(.unopened) {
            let isControl = type == .genesis || type == .keybag
            problem(offset, isControl ? "a control record that does not open" : "an item that does not open")
        }
    }

    private mutating func verifyKeybags(named: KeybagRecord) throws(TokenStorageError) {
        for (index, copy) in try KeybagCopies(reading: file).copies.enumerated() {
            let place = index * VaultFormat.keybagLength
            switch copy.keybag {
            case .failure: problem(place, "a damaged copy of the keybag")
            case .success where Keybag.digest(of: copy.bytes) != named.digest:
                problem(place, "a copy of the keybag that is not the one in use")
            case .success: break
            }
        }
    }

    /// The pointer leads to an index, or there is none.
    private mutating func verifyPointer() throws(TokenStorageError) {
        let file = file
        let sector = try onDisk { () throws(SystemFailure) in
            try file.read(IndexPointer.length, at: VaultFormat.pointerStart)
        }
        do {
            let pointer = try IndexPointer(decoding: sector)
            if !indexes.contains(pointer.offset) {
                problem(VaultFormat.pointerStart, "a pointer that leads to no index")
            }
        } catch {
            if error != .wrongMagic { problem(VaultFormat.pointerStart, "a damaged pointer to the index") }
        }
    }

    /// Behind the last complete commit there are zeros, or what a crash left of the next one.
    private mutating func verifyTail(from end: Int, size: Int) throws(TokenStorageError) {
        let scanner = LogScanner(file: file, codec: codec, chunk: 64 << 10)
        guard let stretch = try scanner.firstNonZero(from: end) else { return }
        let file = file
        let bytes = try onDisk { () throws(SystemFailure) in try file.read(64 << 10, at: stretch) }
        let place = stretch + (bytes.firstIndex { $0 != 0 } ?? 0)
        // A crash keeps whole sectors: what is left begins where the commit begins, or with a sector,
        // and it is sealed bytes. A single byte among zeros is neither.
        let begin = place - place % VaultFormat.sector
        let start = max(begin, end)
        let head = try onDisk { () throws(SystemFailure) in try file.read(8, at: start) }
        guard head.count(where: { $0 != 0 }) >= 4 else {
            problem(place, "bytes where there should be zeros")
            return
        }
        report.notes.append("a commit that a crash cut short, at byte \(end); the next write removes it")
    }

    private mutating func problem(_ offset: Int, _ description: String) {
        report.problems.append(VerificationReport.Problem(offset: offset, description: description))
    }
}
