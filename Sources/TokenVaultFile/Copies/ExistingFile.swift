internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The file in the place that a copy is about to take: the vault, perhaps damaged, or an empty file.
struct ExistingFile {
    private let opened: VaultFile

    var file: any DiskFile { opened.file }
    var identity: FileIdentity { opened.attributes.identity }
    /// Whether the file is empty.
    var isEmpty: Bool { opened.isEmpty }
    /// The newest whole copy of its present keybag; `nil` when none is whole.
    var keybag: Keybag? { (try? KeybagCopies(reading: file))?.whole.first?.keybag }

    /// Opens the file at `place`; `nil` when there is none. Throws `notAVault` for a file that is neither a
    /// vault's nor empty: nothing else is replaced. Throws `insecurePermissions` for another user's file.
    init?(at place: VaultLocation) throws(TokenStorageError) {
        guard let opened = try VaultFile.openIfThere(place, for: .replacement) else { return nil }
        self.opened = opened
    }

    /// Throws `alreadyExists` when the file is known to be another vault than `vault`.
    func check(is vault: VaultIdentifier) throws(TokenStorageError) {
        guard let vaults = try? KeybagCopies(reading: file).vaults, !vaults.isEmpty else { return }
        guard vaults.contains(vault) else { throw .file(.alreadyExists, .exists(.otherVault)) }
    }

    /// Throws `conflict` when another file is in `place` by now, and `unavailable` when none is.
    func requireIn(_ place: VaultLocation) throws(TokenStorageError) {
        let there = try onDisk { () throws(SystemFailure) in try place.directory.attributes(of: place.name) }
        guard let there else { throw .vaultIsGone(at: place.path) }
        guard there.identity == identity else { throw .tookPlace }
    }

    /// Returns whether `other` has the same bytes. What is a hole in both is not read.
    func isIdentical(to other: any DiskFile) throws(TokenStorageError) -> Bool {
        let file = file
        return try onDisk { () throws(SystemFailure) in
            let size = try file.attributes().size
            guard try other.attributes().size == size else { return false }
            var offset = 0
            while let place = [file.data(from: offset), other.data(from: offset)].compactMap({ $0 }).min(),
                place < size
            {
                let (left, right) = (
                    try file.read(1 << 20, at: place), try other.read(1 << 20, at: place)
                )
                if left != right { return false }
                if left.isEmpty { return true }
                offset = place + left.count
            }
            return true
        }
    }

    /// Returns whether nothing is behind `last`, where the log ends. A frame put behind a crash's remainder
    /// would say that the remainder was durable.
    func isClean(_ copy: CheckedCopy, upTo last: ScannedFrame?) -> Bool {
        guard let last, let loaded = read(in: copy.place, copy.codec) else { return false }
        return loaded.stop == .clean && loaded.state.tail == last.end
    }

    /// Returns the state of its log; `nil` where that cannot be read.
    func state(in place: VaultLocation, _ codec: FrameCodec) -> LogState? { read(in: place, codec)?.state }

    private func read(in place: VaultLocation, _ codec: FrameCodec) -> LogLoader.Loaded? {
        let loader = LogLoader(
            location: place, codec: codec,
            anchor: Anchor(directory: nil, vault: codec.vault, key: codec.keys.anchor), lockTimeout: .zero)
        return try? loader.read(file, .walking, anchored: nil) { _, _ in }
    }

    /// Appends the notice that makes the file's readers look at the path, where a frame can follow the last
    /// one. Losing the notice to a crash does no harm.
    func announceReplacement(behind last: ScannedFrame?, _ codec: FrameCodec) throws(TokenStorageError) {
        guard let last else { return }
        let file = file
        let place = last.end
        let room = try onDisk { () throws(SystemFailure) in try file.read(Frame.overhead, at: place) }
        guard room.count == Frame.overhead, isAllZero(room) else { return }
        let sealed = try codec.seal(
            FrameDraft(type: .superseded), generation: last.header.generation, groupStart: place,
            previous: last.chain, endsCommit: true)
        try onDisk { () throws(SystemFailure) in try file.write(sealed.bytes, at: place) }
    }
}
