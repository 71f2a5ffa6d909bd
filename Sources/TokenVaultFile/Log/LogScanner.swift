internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A frame that authenticates, at its place.
struct ScannedFrame: Sendable {
    var offset: Int
    var header: FrameHeader
    /// The chain value behind it.
    var chain: Digest

    var end: Int { offset + header.frameLength }
}

/// The end of a walk along the log.
struct ScanEnd {
    /// The place of the next frame: behind the last complete commit.
    var end: Int
    /// The last 16 bytes before `end`.
    var trailer: [UInt8] = []
    var stop = Stop.clean

    enum Stop: Equatable {
        /// Zeros, or the end of the file, follow the last complete commit.
        case clean
        /// A frame at this offset is not whole, or a commit's later frames are missing.
        case failing(at: Int)
    }
}

/// The result of a walk along a few frames.
struct ScanResult {
    /// Frames of complete commits, in order.
    var frames: [ScannedFrame]
    var end: Int
    var trailer: [UInt8]
    var stop: ScanEnd.Stop
}

/// Walks along frames, checking that each authenticates and follows the one before.
struct LogScanner {
    let file: any DiskFile
    let codec: FrameCodec
    private var window: [UInt8] = []
    private var windowStart = 0
    private let chunk: Int

    /// Creates a scanner that reads `chunk` bytes at a time.
    init(file: any DiskFile, codec: FrameCodec, chunk: Int) {
        self.file = file
        self.codec = codec
        self.chunk = chunk
    }

    /// Walks from `start`, whose frame must follow `previous`, and returns all frames of complete commits.
    mutating func scan(from start: Int, previous: Digest) throws(TokenStorageError) -> ScanResult {
        var frames: [ScannedFrame] = []
        let end = try scan(from: start, previous: previous) { (frame) throws(TokenStorageError) in
            frames.append(frame)
        }
        return ScanResult(frames: frames, end: end.end, trailer: end.trailer, stop: end.stop)
    }

    /// Walks from `start`, whose frame must follow `previous`, and gives `body` every frame of a complete
    /// commit. Contents are checked for the frames that were written last; all before them were durable when
    /// those were written. Throws `corrupt` when an authentic frame does not follow its predecessor: no crash
    /// does that.
    mutating func scan(
        from start: Int, previous: Digest, _ body: (ScannedFrame) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) -> ScanEnd {
        var end = ScanEnd(end: start)
        var chain = previous
        var offset = start
        // Complete commits of the group that was written last, and the existing frames of the next commit.
        var group: [ScannedFrame] = []
        var pending: [ScannedFrame] = []
        scanning: while true {
            guard try fill(offset, Frame.prefixLength) else {
                if try !isZeroToEnd(from: offset) { end.stop = .failing(at: offset) }
                break
            }
            let position = offset - windowStart
            if isAllZero(window, in: position..<position + Frame.prefixLength) { break }
            guard let length = Frame.length(ofPrefix: window, at: position),
                try fill(offset, length),
                let header = try codec.header(in: window, at: offset - windowStart),
                header.frameLength == length
            else {
                end.stop = .failing(at: offset)
                break scanning
            }
            let frame = ScannedFrame(
                offset: offset, header: header,
                chain: try codec.chain(after: window, at: offset - windowStart))
            guard frame.header.previous == chain else {
                throw .damage(at: offset, .frameOutOfPlace)
            }
            chain = frame.chain
            offset = frame.end
            pending.append(frame)
            guard frame.header.endsCommit else { continue }
            if group.last.map({ $0.header.groupStart != frame.header.groupStart }) ?? false {
                for durable in group { try body(durable) }
                group.removeAll(keepingCapacity: true)
            }
            group += pending
            pending.removeAll(keepingCapacity: true)
            end.end = offset
        }
        // Whole frames of a commit whose end is missing: the place of the missing frame tells why.
        if !pending.isEmpty, end.stop == .clean { end.stop = .failing(at: offset) }
        try truncateTornCommits(of: &group, &end)
        for frame in group { try body(frame) }
        end.trailer = try trailer(before: end.end)
        return end
    }

    /// Checks the last group's contents, which nothing behind them shows to be durable. Stops before the
    /// first commit with a frame that is not whole.
    private mutating func truncateTornCommits(
        of group: inout [ScannedFrame], _ end: inout ScanEnd
    ) throws(TokenStorageError) {
        for (index, frame) in group.enumerated() {
            guard try !isWhole(frame) else { continue }
            // The commit begins behind the last frame that ended one.
            let begin = group[..<index].lastIndex { $0.header.endsCommit }.map { $0 + 1 } ?? 0
            end.stop = .failing(at: frame.offset)
            end.end = group[begin].offset
            group.removeSubrange(begin...)
            return
        }
    }

    /// Returns the frame at `offset`, if one that authenticates is there, whatever it follows.
    mutating func frame(at offset: Int) throws(TokenStorageError) -> ScannedFrame? {
        guard try fill(offset, Frame.contentOffset) else { return nil }
        let head = offset - windowStart
        guard let length = Frame.length(ofPrefix: window, at: head),
            let header = try codec.header(in: window, at: head), header.frameLength == length
        else { return nil }
        return ScannedFrame(
            offset: offset, header: header,
            chain: try codec.chain(after: window, at: head))
    }

    /// Returns the tag of the commit that an item's frame names as the one that stored the value; zero for
    /// none. Throws `corrupt` where the frame is not at its place.
    mutating func storingCommit(of entry: IndexEntry) throws(TokenStorageError) -> UInt64 {
        guard entry.isMerged else { return 0 }
        guard let frame = try frame(at: entry.offset), frame.header.generation == entry.generation else {
            throw .damage(at: entry.offset, .frame)
        }
        return frame.header.storedBy
    }

    /// Gives `body` every frame from `start`, whose frame must follow `previous`, to `end`, where one is
    /// known to end. Contents are not looked at. Throws `corrupt` where a frame fails or is out of place.
    mutating func walk(
        from start: Int, to end: Int, previous: Digest,
        _ body: (ScannedFrame) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        var chain = previous
        var offset = start
        while offset < end {
            guard let frame = try frame(at: offset), frame.end <= end else {
                throw .damage(at: offset, .frame)
            }
            guard frame.header.previous == chain else { throw .damage(at: offset, .frameOutOfPlace) }
            try body(frame)
            chain = frame.chain
            offset = frame.end
        }
    }

    /// Returns whether a frame's contents and trailer are intact.
    mutating func isWhole(_ frame: ScannedFrame) throws(TokenStorageError) -> Bool {
        guard try fill(frame.offset, frame.header.frameLength) else { return false }
        let start = frame.offset - windowStart
        let content = start + Frame.contentOffset..<start + frame.header.frameLength - Frame.trailerLength
        return Digest(of: window, in: content) == frame.header.contentDigest
            && Frame.hasTrailer(of: frame.header, in: window, at: start)
    }

    /// Returns the last bytes of what is in front of `end`.
    func trailer(before end: Int) throws(TokenStorageError) -> [UInt8] {
        let file = file
        return try onDisk { () throws(SystemFailure) in
            try file.read(Frame.checksumLength, at: end - Frame.checksumLength)
        }
    }

    /// Makes `count` bytes at `offset` available in the window; returns false when the file ends before.
    mutating func fill(_ offset: Int, _ count: Int) throws(TokenStorageError) -> Bool {
        if offset >= windowStart, offset + count <= windowStart + window.count { return true }
        let file = file
        let wanted = max(count, chunk)
        window = try onDisk { () throws(SystemFailure) in try file.read(wanted, at: offset) }
        windowStart = offset
        return window.count >= count
    }

    /// Returns the bytes at `offset`, if the window has them.
    func bytes(at offset: Int, _ count: Int) -> [UInt8]? {
        guard offset >= windowStart, offset + count <= windowStart + window.count else { return nil }
        return Array(window[offset - windowStart..<offset - windowStart + count])
    }

    /// Returns whether the window has `count` bytes at `offset`, and all are zeros.
    func isZero(_ offset: Int, _ count: Int) -> Bool {
        let start = offset - windowStart
        return start >= 0 && start + count <= window.count && isAllZero(window, in: start..<start + count)
    }

    /// Returns whether nothing but zeros follows `offset`.
    func isZeroToEnd(from offset: Int) throws(TokenStorageError) -> Bool {
        try firstNonZero(from: offset) == nil
    }

    /// Returns the start of a stretch of 64 KiB behind `offset` that is not all zeros.
    func firstNonZero(from offset: Int) throws(TokenStorageError) -> Int? {
        var position = offset
        // A file may have any length: its holes are not read.
        while let data = file.data(from: position) {
            position = data
            let bytes = try onDisk { () throws(SystemFailure) in try file.read(64 << 10, at: position) }
            if bytes.isEmpty { return nil }
            if !isAllZero(bytes) { return position }
            position += bytes.count
        }
        return nil
    }
}
