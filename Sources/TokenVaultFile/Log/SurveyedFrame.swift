internal import TokenVaultCore
internal import TokenVaultCrypto

/// A frame whose header authenticates, without its digests: what a survey keeps of each.
struct SurveyedFrame: Sendable {
    let item: ItemIdentifier
    /// The frame's place, and the facts of its header.
    let entry: IndexEntry
    // Uses the two free bytes in the last word of the entry: a survey keeps a million frames.
    let type: UInt8
    private let marks: UInt8

    init(_ header: FrameHeader, at offset: Int, _ faults: FrameFaults) {
        item = header.item
        entry = IndexEntry(header, at: offset)
        type = header.type
        marks =
            faults.rawValue | (header.endsCommit ? Self.endsCommitMark : 0)
            | (header.groupStart == UInt64(offset) ? Self.beginsGroupMark : 0)
    }

    private static let endsCommitMark: UInt8 = 128
    private static let beginsGroupMark: UInt8 = 64

    var endsCommit: Bool { marks & Self.endsCommitMark != 0 }
    /// Whether the frame is the first of those that were written together.
    var beginsGroup: Bool { marks & Self.beginsGroupMark != 0 }
    /// The faults in the rest of the frame.
    var faults: FrameFaults { FrameFaults(rawValue: marks & ~(Self.endsCommitMark | Self.beginsGroupMark)) }
    var offset: Int { entry.offset }
    var end: Int { entry.offset + entry.frameLength }
    var isItem: Bool { type == RecordType.item.rawValue }
    var isDeletion: Bool { type == RecordType.deletion.rawValue }
}

/// The faults of a frame whose header authenticates.
struct FrameFaults: OptionSet, Sendable {
    let rawValue: UInt8

    /// The trailer behind the contents is not the written one.
    static let trailer = FrameFaults(rawValue: 1)
    /// The contents are not those that the header names.
    static let digest = FrameFaults(rawValue: 2)
    /// The contents are zeros instead.
    static let erased = FrameFaults(rawValue: 4)
    /// Some sectors of the contents are zeros instead: a crash kept the others, or they were changed since.
    static let partlyErased = FrameFaults(rawValue: 32)
    /// The contents are those that the header names, but do not open with its keys.
    static let unopened = FrameFaults(rawValue: 8)
    /// No fault: the keys are not held, and only the digest was checked.
    static let notReadable = FrameFaults(rawValue: 16)

    /// Whether the frame differs from what was written.
    var isTorn: Bool { !isDisjoint(with: [.trailer, .digest]) }
}

extension Frame {
    /// Returns whether the frame at `start` of `bytes` ends in what a check without keys needs.
    static func hasTrailer(of header: FrameHeader, in bytes: [UInt8], at start: Int) -> Bool {
        let end = start + header.frameLength
        return header.contentDigest.beginsAs(bytes, at: end - trailerLength)
            && Hash.isChecksum(at: end - checksumLength, of: bytes, in: start..<start + contentOffset)
    }
}
