internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Opens frames and looks at all of them on every core, ahead of the walk along them.
///
/// A frame's length is readable, so that the file can be cut into frames before any is opened; that each follows
/// the one before is left to the walk. Where a frame does not authenticate it ends: the walk finds out why.
final class FrameReadAhead {
    /// What one thread opens at a time. The walk itself does little for a frame.
    private static let chunk = 256 << 10

    private let file: any DiskFile
    private let inspection: FrameInspection
    private let threads: [WorkerThread]
    /// Chunks that were given to threads, in the order of the file.
    private var given: [Chunk] = []
    private var turn = 0
    /// Where the next chunk begins; `nil` when there is none.
    private var nextStart: Int?
    private var opened: [ScannedFrame] = []
    private var position = 0

    /// Reads frames of `file` from `start`.
    init(file: any DiskFile, inspection: FrameInspection, from start: Int) {
        self.file = file
        self.inspection = inspection
        nextStart = start
        threads = (0..<ProcessFacts.processors).map { _ in WorkerThread(name: "vault-verify") }
    }

    /// The frame at `offset`; `nil` when it was not opened ahead. Throws what reading it, or opening its contents,
    /// threw.
    func next(at offset: Int) throws(TokenStorageError) -> ScannedFrame? {
        while true {
            while position < opened.count {
                let place = opened[position].offset
                guard place <= offset else { return nil }
                position += 1
                if place == offset { return opened[position - 1] }
            }
            // Two for each thread, so that none waits for the walk.
            while given.count < 2 * threads.count, try giveNext() {}
            guard !given.isEmpty else { return nil }
            let chunk = given.removeFirst()
            opened = try chunk.frames()
            position = 0
            // Behind a frame that failed the walk goes on by itself.
            if opened.count < chunk.count {
                nextStart = nil
                given = []
            }
        }
    }

    /// Reads a chunk and gives it to a thread; false when there is none.
    private func giveNext() throws(TokenStorageError) -> Bool {
        guard let start = nextStart else { return false }
        var bytes = try read(Self.chunk, at: start)
        if let length = Frame.length(ofPrefix: bytes), length > bytes.count {
            bytes = try read(length, at: start)
        }
        var cuts: [Int] = []
        var position = 0
        while let length = Frame.length(ofPrefix: bytes, at: position), position + length <= bytes.count {
            cuts.append(position)
            position += length
        }
        nextStart = cuts.isEmpty ? nil : start + position
        guard !cuts.isEmpty else { return false }
        let chunk = Chunk(start: start, bytes: bytes, cuts: cuts, inspection: inspection)
        given.append(chunk)
        threads[turn % threads.count].run { chunk.open() }
        turn += 1
        return true
    }

    private func read(_ count: Int, at offset: Int) throws(TokenStorageError) -> [UInt8] {
        let file = file
        return try onDisk { () throws(SystemFailure) in try file.read(count, at: offset) }
    }
}

/// Some frames of the file, for one thread to open.
private final class Chunk: Sendable {
    private let start: Int
    private let bytes: [UInt8]
    private let cuts: [Int]
    private let inspection: FrameInspection
    private let outcome = Monitor(Result<[ScannedFrame], TokenStorageError>?.none)

    init(start: Int, bytes: [UInt8], cuts: [Int], inspection: FrameInspection) {
        self.start = start
        self.bytes = bytes
        self.cuts = cuts
        self.inspection = inspection
    }

    /// How many frames there should be.
    var count: Int { cuts.count }

    /// Opens the frames, up to one that does not authenticate.
    func open() {
        let frames = Result { () throws(TokenStorageError) in try openAll() }
        outcome.announce { $0 = frames }
    }

    /// The frames, once they are opened.
    func frames() throws(TokenStorageError) -> [ScannedFrame] { try outcome.wait { $0 }.get() }

    private func openAll() throws(TokenStorageError) -> [ScannedFrame] {
        var frames: [ScannedFrame] = []
        frames.reserveCapacity(cuts.count)
        let scratch = Scratch()
        for position in cuts {
            guard let header = try inspection.codec.header(in: bytes, at: position),
                header.frameLength == Frame.length(ofPrefix: bytes, at: position)
            else { break }
            let offset = start + position
            frames.append(
                ScannedFrame(
                    offset: offset, header: header,
                    chain: try inspection.codec.chain(after: bytes, at: position),
                    faults: try inspection.faults(
                        of: header, in: bytes, at: position, offset: offset, scratch: scratch)))
        }
        return frames
    }
}
