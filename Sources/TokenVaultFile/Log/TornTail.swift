internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A crash's remainder behind the last complete commit of a log, of any length.
struct TornTail {
    let file: any DiskFile
    let start: Int
    let end: Int

    private static let chunk = 1 << 20

    /// Replaces the remainder by zeros, and keeps its bytes in a file beside the vault; returns false when it
    /// is all zeros already.
    func cut(keepingIn location: VaultLocation) throws(TokenStorageError) -> Bool {
        let last = try lastChunk()
        guard let last else { return false }
        keepAside(upTo: last, location)
        // From behind: as long as the beginning is there, a process that comes after a crash sees the
        // remainder.
        var position = last
        while position >= start {
            let (file, place) = (file, position)
            let count = min(Self.chunk, end - position)
            try onDisk { () throws(SystemFailure) in
                try file.write([UInt8](repeating: 0, count: count), at: place)
            }
            position -= Self.chunk
        }
        return true
    }

    /// Returns the start of the last part that is not all zeros; `nil` when there is none.
    private func lastChunk() throws(TokenStorageError) -> Int? {
        var last: Int?
        for position in stride(from: start, to: end, by: Self.chunk) {
            let bytes = try onDisk { () throws(SystemFailure) in try read(position) }
            if !isAllZero(bytes) { last = position }
        }
        return last
    }

    /// Keeps the bytes for the user to look at. The vault does not need them, so a failure does no harm.
    private func keepAside(upTo last: Int, _ location: VaultLocation) {
        let name = location.name + ".torn"
        try? location.directory.remove(name)
        guard let aside = try? location.directory.open(name, .create) else { return }
        for position in stride(from: start, through: last, by: Self.chunk) {
            guard var bytes = try? read(position) else { return }
            if position == last { bytes.removeLast(bytes.reversed().prefix { $0 == 0 }.count) }
            guard (try? aside.write(bytes, at: position - start)) != nil else { return }
        }
    }

    private func read(_ position: Int) throws(SystemFailure) -> [UInt8] {
        try file.read(min(Self.chunk, end - position), at: position)
    }
}
