internal import TokenVaultCore
internal import TokenVaultCrypto

/// Opens the contents of items' records, to check whether they open. It may hold keys in use: not for long.
protocol ContentChecking: ~Copyable, SendableMetatype {
    /// Checks whether the contents at a range of bytes of an item's record, or of a deletion's, are whole.
    /// Opens them into `scratch`.
    mutating func check(
        _ bytes: [UInt8], in content: Range<Int>, of header: FrameHeader, _ scratch: inout Scratch
    ) throws(TokenStorageError) -> ContentFinding
}

/// The result of opening the contents of an item's record.
enum ContentFinding { case whole, damaged, notReadable }

/// Opens and checks all frames, one after the other. It holds the log's keys in use, for a stretch of the
/// file.
struct FrameSurveyor<Contents: ContentChecking & ~Copyable>: ~Copyable {
    /// A frame, with the chain values before and behind it.
    struct Link {
        let frame: SurveyedFrame
        let previous: Digest
        let chain: Digest
    }

    private let codec: FrameCodec
    private let header: KeyUse
    private let chain: KeyUse
    private var contents: Contents

    /// Throws `closed` when the log's keys are wiped.
    init(_ codec: FrameCodec, _ contents: consuming Contents) throws(TokenStorageError) {
        guard let header = codec.keys.header.use(), let chain = codec.keys.chain.use() else {
            throw .file(.closed)
        }
        self.codec = codec
        self.header = header
        self.chain = chain
        self.contents = contents
    }

    /// Returns the frame at `start` of `bytes`, which is at `offset` of the file; `nil` when its header does
    /// not authenticate. All of its `length` bytes are there.
    mutating func link(
        in bytes: [UInt8], at start: Int, length: Int, offset: Int, _ scratch: inout Scratch
    ) throws(TokenStorageError) -> Link? {
        guard let header = try codec.header(in: bytes, at: start, with: self.header, &scratch),
            header.frameLength == length
        else { return nil }
        return Link(
            frame: SurveyedFrame(
                header, at: offset,
                try faults(of: header, in: bytes, at: start, offset: offset, &scratch)),
            previous: header.previous,
            chain: Digest(of: bytes, in: start..<start + Frame.contentOffset, with: chain))
    }

    /// Returns the faults of the frame at `start` of `bytes`, which is at `offset` of the file.
    private mutating func faults(
        of header: FrameHeader, in bytes: [UInt8], at start: Int, offset: Int, _ scratch: inout Scratch
    ) throws(TokenStorageError) -> FrameFaults {
        let content = start + Frame.contentOffset..<start + header.frameLength - Frame.trailerLength
        var faults: FrameFaults = []
        if !Frame.hasTrailer(of: header, in: bytes, at: start) { faults.insert(.trailer) }
        guard Digest(of: bytes, in: content) == header.contentDigest else {
            faults.insert(.digest)
            if isAllZero(bytes, in: content) {
                faults.insert(.erased)
            } else if hasZeroSector(bytes, content, at: offset + Frame.contentOffset) {
                faults.insert(.partlyErased)
            }
            return faults
        }
        switch RecordType(rawValue: header.type) {
        case .item, .deletion:
            switch try contents.check(bytes, in: content, of: header, &scratch) {
            case .whole: break
            case .damaged: faults.insert(.unopened)
            case .notReadable: faults.insert(.notReadable)
            }
        case .genesis, .keybag, .ancestry:
            if try codec.openControl(Array(bytes[content]), header: header) == nil {
                faults.insert(.unopened)
            }
        case .checkpoint, .superseded, .indexPages, .index, nil: break
        }
        return faults
    }

    /// Returns whether a sector of the contents, which are at `place` of the file, is all zeros.
    private func hasZeroSector(_ bytes: [UInt8], _ content: Range<Int>, at place: Int) -> Bool {
        var position = content.lowerBound
        while position < content.upperBound {
            let offset = place + position - content.lowerBound
            let next = min(content.upperBound, position + VaultFormat.sector - offset % VaultFormat.sector)
            if isAllZero(bytes, in: position..<next) { return true }
            position = next
        }
        return false
    }
}
