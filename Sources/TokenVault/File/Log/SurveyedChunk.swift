/// What a survey found in a chunk of the file.
struct SurveyedChunk: Sendable {
    /// What a thread reads and opens at a time: what its processor's cache holds.
    static let length = 256 << 10

    /// Up to the first that does not authenticate or follow.
    var frames: [SurveyedFrame] = []
    /// What its first frame follows, and what follows its last.
    var previous = FrameCodec.chainStart
    var chain = FrameCodec.chainStart
    /// Where the frame is behind which the chain has the value that is looked for.
    var head: Int?
    /// Whether all its frames authenticate and follow one another.
    var isWhole = false
    /// Whether the frame behind the last of them authenticates and does not follow it.
    var isOutOfPlace = false
    private let start: Int

    init(start: Int) {
        self.start = start
        frames.reserveCapacity(Self.length / 512)
    }

    /// Where the frame belongs that follows the last.
    var end: Int { frames.last?.end ?? start }
}

/// Where a survey ended, and why.
struct SurveyEnd {
    var log: SurveyedLog
    /// Where the next frame belongs, complete commit or not.
    var place: Int
    /// Whether a frame stands there that does not follow.
    var isOutOfPlace = false
}
