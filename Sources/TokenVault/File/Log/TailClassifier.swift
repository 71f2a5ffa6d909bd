internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Tells what a crash left behind the log from damage to what had been acknowledged.
///
/// A failing frame is a torn write only if no frame behind it says that it had been durable, and a whole
/// sector of it is missing: a crash loses sectors, it does not change bits. Ask only while holding the
/// lock; for a reader, bytes behind the end may be a write under way.
struct TailClassifier {
    let file: any DiskFile
    let codec: FrameCodec

    /// Throws `corrupt` unless what stands at `failing` and behind is what a crash leaves.
    func requireTorn(at failing: Int) throws(TokenStorageError) {
        let size = try onDisk { () throws(SystemFailure) in try file.attributes().size }
        guard size > failing else { return }
        let bytes = try onDisk { () throws(SystemFailure) in try file.read(size - failing, at: failing) }
        guard let last = bytes.lastIndex(where: { $0 != 0 }) else { return }
        try requireNothingDurable(behind: failing, in: bytes, end: last + 1)
        if let extent = try extent(in: bytes, at: failing),
            isCutShort(in: bytes, offset: failing, extent: extent)
        {
            return
        }
        throw .damage(at: failing, "a damaged frame")
    }

    /// How much of the failing frame a crash must explain; `nil` when no crash does. Only lengths that
    /// authenticate are believed: a changed length must not pass for a frame that the file's end cut off.
    private func extent(in bytes: [UInt8], at failing: Int) throws(TokenStorageError) -> Int? {
        guard bytes.count >= Frame.contentOffset, let header = try codec.header(in: bytes, at: 0) else {
            return Frame.contentOffset
        }
        guard
            isAllZero(bytes, in: 0..<Frame.prefixLength)
                || Frame.length(ofPrefix: bytes) == header.frameLength
        else { return nil }
        return header.frameLength
    }

    /// A frame that authenticates and was written when `failing` was durable proves damage.
    private func requireNothingDurable(
        behind failing: Int, in bytes: [UInt8], end: Int
    ) throws(TokenStorageError) {
        var position = 8
        while position + Frame.overhead <= bytes.count, position < end {
            defer { position += 8 }
            guard bytes[position] == Frame.magic[0],
                Frame.length(ofPrefix: bytes, at: position) != nil,
                let header = try codec.header(in: bytes, at: position)
            else { continue }
            if header.groupStart > UInt64(failing) {
                throw .damage(at: failing, "a damaged frame in front of a whole one")
            }
        }
    }

    /// Whether the file ends inside the first `extent` bytes, some sector's share of them is all zeros, or
    /// the last 16 are: a write that came to an end early is cut at any byte. A share is at least eight
    /// bytes and, like the 16, never all zeros when it was written.
    private func isCutShort(in bytes: [UInt8], offset: Int, extent: Int) -> Bool {
        if bytes.count < extent || isAllZero(bytes, in: extent - Frame.checksumLength..<extent) {
            return true
        }
        var position = 0
        while position < extent {
            let next = min(extent, position + VaultFormat.sector - (offset + position) % VaultFormat.sector)
            if isAllZero(bytes, in: position..<next) { return true }
            position = next
        }
        return false
    }
}
