internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Distinguishes a crash's remainder behind the log from damage to acknowledged frames.
///
/// A failing frame is a torn write only if no frame behind it says that it was durable, and a whole sector is
/// missing. A crash loses sectors; it does not change bits. Ask only while holding the lock; for a reader,
/// bytes behind the end may be a write under way.
struct TailClassifier {
    let file: any DiskFile
    let codec: FrameCodec

    /// Throws `corrupt` unless a crash explains the bytes at `failing` and behind.
    func requireTorn(at failing: Int) throws(TokenStorageError) {
        let size = try onDisk { () throws(SystemFailure) in try file.attributes().size }
        guard size > failing else { return }
        guard try hasBytes(from: failing) else { return }
        try requireNothingDurable(behind: failing)
        let count = min(size - failing, Frame.maximumLength)
        let bytes = try onDisk { () throws(SystemFailure) in try file.read(count, at: failing) }
        if let extent = try extent(in: bytes, at: failing),
            isCutShort(in: bytes, offset: failing, extent: extent)
        {
            return
        }
        throw .damage(at: failing, .frame)
    }

    /// Returns whether there are bytes other than zeros.
    private func hasBytes(from offset: Int) throws(TokenStorageError) -> Bool {
        try LogScanner(file: file, codec: codec, chunk: 64 << 10).firstNonZero(from: offset) != nil
    }

    /// Returns how much of the failing frame a crash must explain; `nil` when no crash does. Only lengths
    /// that authenticate are trusted: a changed length must not pass for a frame that the file's end cut off.
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

    /// Throws when a frame that authenticates was written when `failing` was durable, which proves damage.
    private func requireNothingDurable(behind failing: Int) throws(TokenStorageError) {
        let file = file
        let scanner = LogScanner(file: file, codec: codec, chunk: 0)
        var start = failing + 8
        // A hole is not read.
        while let bytes = try scanner.firstNonZero(from: start) {
            start = max(start, bytes - (bytes - start) % 8)
            let window = try onDisk { () throws(SystemFailure) in
                try file.read(Self.window + Frame.contentOffset, at: start)
            }
            guard window.count >= Frame.overhead else { return }
            for position in stride(from: 0, to: min(window.count, Self.window), by: 8)
            where window[position] == Frame.magic[0]
                && Frame.length(ofPrefix: window, at: position) != nil
                && position + Frame.contentOffset <= window.count
            {
                guard let header = try codec.header(in: window, at: position) else { continue }
                if header.groupStart > UInt64(failing) {
                    throw .damage(at: failing, .frameBeforeWholeFrame)
                }
            }
            start += Self.window
        }
    }

    /// The bytes to look at at a time: the stretch that ``LogScanner/firstNonZero(from:)`` finds. A file may be of any size, and
    /// have single bytes far apart.
    private static let window = 64 << 10

    /// Returns whether the file ends inside the first `extent` bytes, some sector's share of them is all
    /// zeros, or the last 16 are. A write that came to an end early is cut at any byte. A share is at least
    /// eight bytes and, like the 16, never all zeros when it was written.
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
