internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Reads every byte of a vault and changes nothing. The caller holds a lock that keeps writers away.
struct LogVerifier {
    /// What opening a record's contents told.
    enum Contents { case whole, damaged, notReadable }

    private let file: any DiskFile
    private let codec: FrameCodec
    private let progress: ((Int, Int) -> Void)?
    private let openContents: (FrameHeader, [UInt8]) throws(TokenStorageError) -> Contents
    /// Where index blocks end.
    private var indexes: Set<Int> = []
    private var report = VerificationReport(
        frames: 0, items: 0, checkedByDigestOnly: 0, bytes: 0, problems: [], notes: [])

    /// `openContents` opens the sealed contents of an item's record, where the keys are held.
    init(
        file: any DiskFile, codec: FrameCodec, progress: ((Int, Int) -> Void)?,
        openContents: @escaping (FrameHeader, [UInt8]) throws(TokenStorageError) -> Contents
    ) {
        self.file = file
        self.codec = codec
        self.progress = progress
        self.openContents = openContents
    }

    /// Verifies the file. `named` is the keybag that the log names, `live` says whether a frame is an
    /// item's newest, and `end` is where the last complete commit ends.
    mutating func verify(
        named: KeybagRecord, live: LogIndex, end: Int
    ) throws(TokenStorageError) -> VerificationReport {
        let file = file
        let size = try onDisk { () throws(SystemFailure) in try file.attributes().size }
        report.bytes = size
        report.items = try live.figures().items
        try verifyKeybags(named: named)
        var chain = FrameCodec.chainStart
        var offset = VaultFormat.logStart
        var scanner = LogScanner(file: file, codec: codec, chunk: 1 << 20)
        while offset < end {
            if report.frames.isMultiple(of: 1_024) { progress?(offset, size) }
            guard try scanner.fill(offset, Frame.prefixLength),
                let prefix = scanner.bytes(at: offset, Frame.prefixLength), !isAllZero(prefix)
            else { break }
            guard let length = Frame.length(ofPrefix: prefix), try scanner.fill(offset, length),
                let bytes = scanner.bytes(at: offset, length),
                let header = try codec.header(in: bytes, at: 0), header.frameLength == length
            else { break }
            if header.previous != chain { problem(offset, "a frame out of place") }
            chain = try codec.chain(after: bytes)
            let isLive = try live.entry(of: header.item)?.offset == offset
            try verify(bytes, header, at: offset, isLive: isLive)
            if header.type == RecordType.index.rawValue { indexes.insert(offset) }
            report.frames += 1
            offset += length
        }
        try verifyPointer()
        try verifyTail(from: offset, size: size)
        progress?(size, size)
        return report
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

    private mutating func verify(
        _ bytes: [UInt8], _ header: FrameHeader, at offset: Int, isLive: Bool
    ) throws(TokenStorageError) {
        let content = Frame.contentOffset..<bytes.count - Frame.trailerLength
        let checksum = Hash.digest(bytes, in: 0..<Frame.contentOffset, length: Frame.checksumLength)
        let trailer = Array(header.contentDigest[0..<Frame.checksumLength]) + checksum
        if Array(bytes[content.upperBound...]) != trailer { problem(offset, "a damaged frame's end") }
        let isItem = header.type == RecordType.item.rawValue
        guard Hash.digest(bytes, in: content, length: Frame.digestLength) == header.contentDigest else {
            if isItem, !isLive, isErased(bytes, content, at: offset) { return }
            switch RecordType(rawValue: header.type) {
            case .index, .indexPages: problem(offset, "a damaged index")
            default: problem(offset, isLive ? "a damaged item" : "a damaged value that is no longer in use")
            }
            return
        }
        switch RecordType(rawValue: header.type) {
        case .item, .deletion:
            switch try openContents(header, Array(bytes[content])) {
            case .whole: break
            case .damaged: problem(offset, "an item that does not open")
            case .notReadable: report.checkedByDigestOnly += 1
            }
        case .genesis, .keybag:
            let body = Array(bytes[content])
            if try codec.openControl(body, header: header) == nil {
                problem(offset, "a control record that does not open")
            }
        case .checkpoint, .superseded, .indexPages, .index, nil: break
        }
    }

    /// Whether a dead value was overwritten with zeros: wholly, or up to the sectors that a crash kept.
    private func isErased(_ bytes: [UInt8], _ content: Range<Int>, at offset: Int) -> Bool {
        var position = content.lowerBound
        while position < content.upperBound {
            let sectorEnd = position + VaultFormat.sector - (offset + position) % VaultFormat.sector
            let next = min(content.upperBound, sectorEnd)
            if isAllZero(bytes, in: position..<next) { return true }
            position = next
        }
        return false
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
