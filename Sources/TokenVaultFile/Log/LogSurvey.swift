internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Examines every frame of a log, on every processor.
///
/// A frame's length is readable, so that the file can be cut into chunks of frames before any is opened. An
/// idle thread takes the next chunk. Putting the chunks together, in the file's order, shows whether each
/// follows the one before.
final class LogSurvey<Contents: ContentChecking & ~Copyable>: Sendable {
    private let file: any DiskFile
    private let codec: FrameCodec
    private let maker: @Sendable () -> Contents
    private let head: Digest?
    private let start: Int
    private let course: Mutex<SurveyRun>
    private let outcomes = Monitor(Outcomes())

    /// The next chunk to be taken.
    private struct SurveyRun {
        /// The start of the chunk; `nil` where there is none.
        var start: Int?
        var number = 0
    }

    private struct Outcomes {
        var waiting: [Int: Result<SurveyedChunk, TokenStorageError>] = [:]
        var working = 0
    }

    /// Creates a survey of the frames of `file` from `start`. `head` is the chain value to look for.
    init(
        _ file: any DiskFile, _ codec: FrameCodec, from start: Int, head: Digest?,
        checkingBy maker: @escaping @Sendable () -> Contents
    ) {
        self.file = file
        self.codec = codec
        self.maker = maker
        self.head = head
        self.start = start
        course = Mutex(SurveyRun(start: start))
    }

    /// Surveys, also on the caller's thread, and reports the reached place to `progress`. Throws the errors
    /// of reading a frame or opening its contents.
    func run(expecting items: Int, _ progress: (Int) -> Void) throws(TokenStorageError) -> SurveyEnd {
        let threads = (1..<max(2, ProcessFacts.processors)).map { _ in WorkerThread(name: "vault-verify") }
        outcomes.withLock { $0.working = threads.count }
        for thread in threads {
            thread.run { [self] in
                var memory = SurveyMemory()
                while surveyNext(&memory) {}
                outcomes.announce { $0.working -= 1 }
            }
        }
        defer {
            course.withLock { $0.start = nil }
            outcomes.wait { $0.working == 0 ? () : nil }
        }
        var end = SurveyEnd(log: SurveyedLog(expecting: items), place: start)
        var chain = FrameCodec.chainStart
        var number = 0
        func take(_ outcome: Result<SurveyedChunk, TokenStorageError>) throws(TokenStorageError) -> Bool {
            let chunk = try outcome.get()
            number += 1
            guard number < SurveyedLog.mostChunks else {
                throw .file(.resourcesExhausted, .shortage(.logSize))
            }
            guard chunk.previous == chain || chunk.frames.isEmpty else {
                end.isOutOfPlace = true
                return false
            }
            chain = chunk.chain
            end.isOutOfPlace = chunk.isOutOfPlace
            end.place = chunk.end
            end.log.append(chunk)
            progress(end.place)
            return chunk.isWhole
        }
        var memory = SurveyMemory()
        while true {
            let isWorking = surveyNext(&memory)
            while let outcome = outcomes.withLock({ $0.waiting.removeValue(forKey: number) }) {
                guard try take(outcome) else { return end }
            }
            if !isWorking { break }
        }
        while let outcome = outcomes.wait({ outcomes in
            let next = outcomes.waiting.removeValue(forKey: number)
            return next == nil && outcomes.working > 0 ? nil : .some(next)
        }) {
            guard try take(outcome) else { return end }
        }
        return end
    }

    /// Takes a chunk and surveys it; returns false when there is none.
    private func surveyNext(_ memory: inout SurveyMemory) -> Bool {
        let outcome: Result<SurveyedChunk, TokenStorageError>
        let number: Int
        do throws(TokenStorageError) {
            guard let piece = try nextPiece(&memory) else { return false }
            number = piece.number
            outcome = survey(piece, &memory)
        } catch {
            // Chunks that were taken before are looked at first.
            number = course.withLock { course in
                course.start = nil
                return course.number
            }
            outcome = .failure(error)
        }
        outcomes.announce { $0.waiting[number] = outcome }
        return true
    }

    private struct Piece {
        let number: Int
        let start: Int
        /// The number of bytes in the memory's buffer.
        let count: Int
    }

    /// Reads the next chunk; `nil` when no frame is there.
    private func nextPiece(_ memory: inout SurveyMemory) throws(TokenStorageError) -> Piece? {
        try course.withLock { (course) throws(TokenStorageError) in
            guard let start = course.start else { return nil }
            let count = try memory.read(file, at: start)
            guard count > 0 else {
                course.start = nil
                return nil
            }
            course.start = start + count
            defer { course.number += 1 }
            return Piece(number: course.number, start: start, count: count)
        }
    }

    private func survey(
        _ piece: Piece, _ memory: inout SurveyMemory
    ) -> Result<SurveyedChunk, TokenStorageError> {
        do throws(TokenStorageError) {
            return .success(try chunk(piece, &memory))
        } catch {
            return .failure(error)
        }
    }

    private func chunk(
        _ piece: Piece, _ memory: inout SurveyMemory
    ) throws(TokenStorageError) -> SurveyedChunk {
        var chunk = SurveyedChunk(start: piece.start)
        var surveyor = try FrameSurveyor(codec, maker())
        var position = 0
        while position < piece.count, let length = Frame.length(ofPrefix: memory.bytes, at: position) {
            let link = try surveyor.link(
                in: memory.bytes, at: position, length: length, offset: piece.start + position,
                &memory.scratch)
            guard let link else { return chunk }
            if position == 0 {
                chunk.previous = link.previous
            } else if link.previous != chunk.chain {
                chunk.isOutOfPlace = true
                return chunk
            }
            chunk.chain = link.chain
            chunk.frames.append(link.frame)
            if link.chain == head { chunk.head = link.frame.offset }
            position += length
        }
        chunk.isWhole = true
        return chunk
    }
}
