internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Reports the damage of a vault whose whole log was surveyed, and checks the rest. The caller holds a lock
/// that keeps writers away, and nothing is changed.
struct LogVerifier {
    private let file: any DiskFile
    private let codec: FrameCodec
    private let log: SurveyedLog
    private var report: VerificationReport

    /// Creates a verifier of the file that `log` is a survey of.
    init(_ log: SurveyedLog, file: any DiskFile, codec: FrameCodec) {
        self.file = file
        self.codec = codec
        self.log = log
        report = VerificationReport(
            frames: log.count, items: log.items, checkedByDigestOnly: log.checkedByDigestOnly, bytes: 0,
            problems: [], notes: [])
    }

    /// Returns the findings of all of the file. `state` is the position of its log.
    mutating func verify(_ state: LogState) throws(TokenStorageError) -> VerificationReport {
        report.bytes = state.size
        try verifyKeybags(named: state.keybag)
        let deletions = log.lastDeletions(of: Set(log.faulty.map(\.item)))
        for frame in log.faulty {
            let live = log.entry(of: frame.item)?.offset
            let isDeleted = live == nil || deletions[frame.item].map { $0 > frame.offset } ?? false
            describe(
                frame.faults, at: frame.offset, type: RecordType(rawValue: frame.type),
                isLive: live == frame.offset, isDeleted: isDeleted)
        }
        try verifyPointer()
        try verifyTail(from: state.tail)
        return report
    }

    private mutating func describe(
        _ faults: FrameFaults, at offset: Int, type: RecordType?, isLive: Bool, isDeleted: Bool
    ) {
        if faults.contains(.trailer) { problem(offset, .frameEnd) }
        if faults.contains(.digest) {
            // The values of a deleted item are overwritten on purpose.
            if type == .item, isDeleted, faults.contains(.erased) { return }
            if type == .item, isDeleted, faults.contains(.partlyErased) {
                report.notes.append(
                    "a deleted value at byte \(offset) was not erased completely, because of a crash, or was changed "
                        + "since; compacting removes it")
                return
            }
            switch type {
            case .index, .indexPages: problem(offset, .index)
            default: problem(offset, isLive ? .item : .replacedValue)
            }
        } else if faults.contains(.unopened) {
            let isControl = type == .genesis || type == .keybag || type == .ancestry
            problem(offset, isControl ? .unopenedControlRecord : .unopenedItem)
        }
    }

    private mutating func verifyKeybags(named: KeybagRecord) throws(TokenStorageError) {
        for (index, copy) in try KeybagCopies(reading: file).copies.enumerated() {
            let place = index * VaultFormat.keybagLength
            switch copy.keybag {
            case .failure: problem(place, .keybagCopy)
            case .success where Keybag.digest(of: copy.bytes) != named.digest:
                problem(place, .otherKeybagCopy)
            case .success: break
            }
        }
    }

    /// Checks that the pointer leads to an index, or that there is none.
    private mutating func verifyPointer() throws(TokenStorageError) {
        let file = file
        let sector = try onDisk { () throws(SystemFailure) in
            try file.read(IndexPointer.length, at: VaultFormat.pointerStart)
        }
        do {
            let pointer = try IndexPointer(decoding: sector)
            let index = log.controls.contains {
                $0.offset == pointer.offset && $0.type == RecordType.index.rawValue
            }
            if !index {
                problem(VaultFormat.pointerStart, .pointerToNoIndex)
            }
        } catch {
            if error != .wrongMagic { problem(VaultFormat.pointerStart, .indexPointer) }
        }
    }

    /// Checks that zeros, or a crash's remainder of the next commit, are behind the last complete commit.
    private mutating func verifyTail(from end: Int) throws(TokenStorageError) {
        let scanner = LogScanner(file: file, codec: codec, chunk: 64 << 10)
        guard let stretch = try scanner.firstNonZero(from: end) else { return }
        let file = file
        let bytes = try onDisk { () throws(SystemFailure) in try file.read(64 << 10, at: stretch) }
        let place = stretch + (bytes.firstIndex { $0 != 0 } ?? 0)
        // A crash keeps whole sectors: its remainder begins where the commit begins, or with a sector, and
        // consists of sealed bytes. A single byte among zeros is neither.
        let begin = place - place % VaultFormat.sector
        let start = max(begin, end)
        let head = try onDisk { () throws(SystemFailure) in try file.read(8, at: start) }
        guard head.count(where: { $0 != 0 }) >= 4 else {
            problem(place, .bytesAmongZeros)
            return
        }
        report.notes.append(
            "the rest of a commit that a crash cut short, at byte \(start); the next write removes it")
    }

    private mutating func problem(_ offset: Int, _ part: TokenStorageError.Reason.DamagedPart) {
        report.problems.append(VerificationReport.Problem(part, at: offset))
    }
}
