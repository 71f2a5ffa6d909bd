internal import TokenVaultCore

/// The findings of a survey in a chunk of the file.
struct SurveyedChunk: Sendable {
    /// The bytes that a thread reads and opens at a time, which fit into its processor's cache.
    static let length = 256 << 10

    /// The frames up to the first that does not authenticate or follow.
    var frames: [SurveyedFrame] = []
    /// The chain value that its first frame follows, and the one behind its last frame.
    var previous = FrameCodec.chainStart
    var chain = FrameCodec.chainStart
    /// The place of the frame behind which the chain has the wanted value.
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

    /// The place of the frame that follows the last.
    var end: Int { frames.last?.end ?? start }
}

/// The place where a survey ended, and the reason.
struct SurveyEnd {
    var log: SurveyedLog
    /// The place of the next frame, after a complete commit or not.
    var place: Int
    /// Whether a frame stands there that does not follow.
    var isOutOfPlace = false
}
