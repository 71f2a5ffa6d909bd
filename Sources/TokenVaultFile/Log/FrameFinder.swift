internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Finds the frames of a file that may be damaged anywhere. Frames are sealed: a holder of the log's keys
/// wrote each frame that authenticates, wherever it stands now.
struct FrameFinder {
    /// A part of the file, in order.
    enum Finding {
        /// A frame whose header authenticates. Its contents were not looked at.
        case frame(ScannedFrame)
        /// Bytes in which no frame begins. Zeros behind the last frame are not reported.
        case gap(Range<Int>)
    }

    let codec: FrameCodec
    private let size: Int
    private(set) var scanner: LogScanner
    /// The bytes that may still be hashed to see whether frames are whole. Frames of a damaged vault do not overlap, and
    /// need a part of that. Without a key, one front of a long frame can be put behind another any number of times.
    private var room: Int

    init(file: any DiskFile, codec: FrameCodec) throws(TokenStorageError) {
        self.codec = codec
        size = try onDisk { () throws(SystemFailure) in try file.attributes().size }
        scanner = LogScanner(file: file, codec: codec, chunk: 1 << 20)
        room = size > Int.max / 8 ? Int.max : 8 * size
    }

    /// Gives `body` everything behind the keybag copies and the pointer. `progress` gets the bytes done and
    /// the total.
    mutating func forEach(
        progress: ((Int, Int) -> Void)? = nil, _ body: (Finding) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        var offset = VaultFormat.logStart
        var found = 0
        var last: ScannedFrame?
        while offset < size {
            if found.isMultiple(of: 1_024) { progress?(offset, size) }
            found += 1
            if let frame = try frame(at: offset) {
                try body(.frame(frame))
                offset = frame.end
                last = frame
                continue
            }
            guard let end = try endOfBytes(from: offset) else { break }
            let next = try nextFrame(behind: try searchStart(last, offset), progress: progress)
            if next.map({ $0.offset > offset }) ?? true { try body(.gap(offset..<(next?.offset ?? end))) }
            guard let next else { break }
            try body(.frame(next))
            offset = next.end
            last = next
        }
        progress?(size, size)
    }

    /// Returns the place to look for the next frame when none is at `offset`, where the last one ends. That
    /// is inside the last frame if it is not whole: bytes may be missing there.
    private mutating func searchStart(
        _ last: ScannedFrame?, _ offset: Int
    ) throws(TokenStorageError) -> Int {
        guard let last, last.end == offset else { return offset }
        let begin = last.offset + Frame.contentOffset - 1
        room -= last.header.frameLength
        if room >= 0, try !scanner.hasWholeContents(last) { return begin }
        return begin + last.header.metadataLength + last.header.bodyLength
    }

    /// Returns the frame at `offset`: one that is whole up to its header, or one whose prefix alone is
    /// damaged.
    private mutating func frame(at offset: Int) throws(TokenStorageError) -> ScannedFrame? {
        guard offset + Frame.overhead <= size else { return nil }
        if let frame = try scanner.frame(at: offset) { return frame }
        return offset.isMultiple(of: 8) ? try frameIgnoringPrefix(at: offset) : nil
    }

    /// Tries every place behind `offset`: bytes may have been lost or inserted.
    private mutating func nextFrame(
        behind offset: Int, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> ScannedFrame? {
        var position = offset + 1
        while position + Frame.overhead <= size {
            if position.isMultiple(of: 1 << 16) {
                progress?(position, size)
                // No frame begins in a long stretch of zeros.
                guard let bytes = try scanner.firstNonZero(from: position) else { return nil }
                position = max(position, bytes - bytes % 8)
            }
            if position.isMultiple(of: Self.stretch), try isBlank(from: position) {
                position += Self.stretch
                continue
            }
            if position.isMultiple(of: 8) {
                if let frame = try frame(at: position) { return frame }
            } else if try scanner.fill(position, Frame.prefixLength),
                scanner.hasByte(Frame.magic[0], at: position),
                let frame = try scanner.frame(at: position)
            {
                return frame
            }
            position += 1
        }
        return nil
    }

    /// The bytes that are passed over at once where they are zeros.
    private static let stretch = 512

    /// Returns whether no frame begins in the ``stretch`` of bytes from `offset` on. Then these bytes are zeros, and so
    /// are the bytes behind them that a header in the stretch would reach.
    private mutating func isBlank(from offset: Int) throws(TokenStorageError) -> Bool {
        let count = Self.stretch + Frame.contentOffset
        return try scanner.fill(offset, count) && scanner.isZero(offset, count)
    }

    private mutating func frameIgnoringPrefix(at offset: Int) throws(TokenStorageError) -> ScannedFrame? {
        guard try scanner.fill(offset, Frame.contentOffset),
            let bytes = scanner.bytes(at: offset, Frame.contentOffset),
            !isAllZero(bytes, in: Frame.prefixLength..<Frame.prefixLength + 24),
            let header = try codec.header(in: bytes, at: 0), offset + header.frameLength <= size
        else { return nil }
        var written = Array(bytes)
        Frame.putPrefix(length: header.frameLength, into: &written)
        return ScannedFrame(offset: offset, header: header, chain: try codec.chain(after: written))
    }

    /// Returns the place behind the last non-zero byte from `offset` on; `nil` when there is none.
    private func endOfBytes(from offset: Int) throws(TokenStorageError) -> Int? {
        var (start, end) = (offset, Int?.none)
        // A hole is not read.
        while let place = try scanner.firstNonZero(from: start) {
            let file = scanner.file
            let bytes = try onDisk { () throws(SystemFailure) in try file.read(64 << 10, at: place) }
            if let last = bytes.lastIndex(where: { $0 != 0 }) { end = place + last + 1 }
            start = place + bytes.count
        }
        return end
    }
}

extension LogScanner {
    /// Returns whether the window has this byte at `offset`.
    func hasByte(_ byte: UInt8, at offset: Int) -> Bool { bytes(at: offset, 1)?.first == byte }
}
