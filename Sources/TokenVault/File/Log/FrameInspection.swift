internal import TokenVaultCrypto

/// What is wrong with a frame whose header authenticates.
struct FrameFaults: OptionSet, Sendable {
    let rawValue: UInt8

    /// What is behind the contents is not what was written.
    static let trailer = FrameFaults(rawValue: 1)
    /// The contents are not those that the header names.
    static let digest = FrameFaults(rawValue: 2)
    /// Of those, it is zeros that took their place: wholly, or up to the sectors that a crash kept.
    static let erased = FrameFaults(rawValue: 4)
    /// The contents are those that the header names, and do not open with the keys they name.
    static let unopened = FrameFaults(rawValue: 8)
    /// No fault: the keys are not held, and only the digest was checked.
    static let notReadable = FrameFaults(rawValue: 16)

    /// Whether the frame is not as it was written.
    var isTorn: Bool { !isDisjoint(with: [.trailer, .digest]) }
}

/// Looks at all of a frame.
struct FrameInspection: Sendable {
    /// What opening the contents of an item's record told.
    enum Contents { case whole, damaged, notReadable }

    /// Opens the contents at a range of bytes of an item's record, where the keys are held.
    typealias Opening =
        @Sendable (FrameHeader, [UInt8], Range<Int>, Scratch) throws(TokenStorageError) -> Contents

    let codec: FrameCodec
    let openContents: Opening

    /// What is wrong with the frame at `start` of `bytes`, which is at `offset` of the file. What it holds is opened
    /// into `scratch`.
    func faults(
        of header: FrameHeader, in bytes: [UInt8], at start: Int, offset: Int, scratch: Scratch
    ) throws(TokenStorageError) -> FrameFaults {
        let content = start + Frame.contentOffset..<start + header.frameLength - Frame.trailerLength
        var faults: FrameFaults = []
        if !Frame.hasTrailer(of: header, in: bytes, at: start) { faults.insert(.trailer) }
        guard Digest(of: bytes, in: content) == header.contentDigest else {
            faults.insert(.digest)
            if isErased(bytes, content, at: offset + Frame.contentOffset) { faults.insert(.erased) }
            return faults
        }
        switch RecordType(rawValue: header.type) {
        case .item, .deletion:
            switch try openContents(header, bytes, content, scratch) {
            case .whole: break
            case .damaged: faults.insert(.unopened)
            case .notReadable: faults.insert(.notReadable)
            }
        case .genesis, .keybag:
            if try codec.openControl(Array(bytes[content]), header: header) == nil {
                faults.insert(.unopened)
            }
        case .checkpoint, .superseded, .indexPages, .index, nil: break
        }
        return faults
    }

    /// Whether the contents, which are at `place` of the file, were overwritten with zeros: wholly, or up to the
    /// sectors that a crash kept.
    private func isErased(_ bytes: [UInt8], _ content: Range<Int>, at place: Int) -> Bool {
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

extension Frame {
    /// Whether the frame at `start` of `bytes` ends in what a check without keys needs.
    static func hasTrailer(of header: FrameHeader, in bytes: [UInt8], at start: Int) -> Bool {
        let end = start + header.frameLength
        return header.contentDigest.beginsAs(bytes, at: end - trailerLength)
            && Hash.isChecksum(at: end - checksumLength, of: bytes, in: start..<start + contentOffset)
    }
}
