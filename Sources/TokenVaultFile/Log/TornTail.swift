internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A crash's remainder behind the last complete commit of a log, of any length.
struct TornTail {
    let file: any DiskFile
    let codec: FrameCodec
    let start: Int
    let end: Int

    private static let chunk = 1 << 20

    /// The most bytes that are kept for the user to look at: a remainder that a crash left is seldom longer.
    private static let mostKept = 64 << 20

    /// Returns the name of the file beside the vault that keeps the bytes.
    static func name(for vault: String) -> String { vault + ".torn" }

    /// Replaces the remainder by zeros, and keeps its bytes in a file beside the vault; returns false when it
    /// is all zeros already. Holes in the file stay holes.
    func cut(keepingIn location: VaultLocation) throws(TokenStorageError) -> Bool {
        let chunks = try chunks()
        guard !chunks.isEmpty else { return false }
        keepAside(chunks, location)
        // Works backwards: as long as the beginning is there, a process that comes after a crash sees the
        // remainder.
        for position in chunks.reversed() {
            let (file, count) = (file, min(Self.chunk, end - position))
            try onDisk { () throws(SystemFailure) in
                try file.write([UInt8](repeating: 0, count: count), at: position)
            }
        }
        return true
    }

    /// Returns the starts of the parts that are not all zeros.
    private func chunks() throws(TokenStorageError) -> [Int] {
        var chunks: [Int] = []
        let scanner = LogScanner(file: file, codec: codec, chunk: 0)
        var position = start
        while let place = try scanner.firstNonZero(from: position), place < end {
            let chunk = start + (place - start) / Self.chunk * Self.chunk
            chunks.append(chunk)
            position = chunk + Self.chunk
        }
        return chunks
    }

    /// Keeps the bytes for the user to look at, without the zeros between them. The vault does not need them, so a failure
    /// does no harm.
    private func keepAside(_ chunks: [Int], _ location: VaultLocation) {
        let name = Self.name(for: location.name)
        try? location.directory.remove(name)
        guard let aside = try? location.directory.open(name, .create) else { return }
        for position in chunks.prefix(Self.mostKept / Self.chunk) {
            guard var bytes = try? read(position) else { return }
            if position == chunks.last { bytes.removeLast(bytes.reversed().prefix { $0 == 0 }.count) }
            guard (try? aside.write(bytes, at: position - start)) != nil else { return }
        }
    }

    private func read(_ position: Int) throws(SystemFailure) -> [UInt8] {
        try file.read(min(Self.chunk, end - position), at: position)
    }
}
