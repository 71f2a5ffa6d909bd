internal import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// What is in the place that a copy is to take: the vault, perhaps damaged, or an empty file.
struct PlaceOccupant {
    let file: any DiskFile
    let identity: FileIdentity
    /// Whether there is nothing in it.
    let isEmpty: Bool

    /// What is at `place`; `nil` when nothing is. Throws `notAVault` for what is no file of a vault and not empty:
    /// nothing else is replaced. `insecurePermissions` for another user's file.
    init?(of place: VaultLocation) throws(TokenStorageError) {
        try place.requireRegularFile()
        do {
            file = try place.directory.open(place.name, .readWrite)
        } catch {
            switch error.errno {
            case .noSuchFileOrDirectory: return nil
            case .tooManySymbolicLinkLevels:
                throw .file(.notAVault, .notARegularFile(.symbolicLink))
            default: throw .system(error)
            }
        }
        let opened = file
        let attributes = try onDisk { () throws(SystemFailure) in try opened.attributes() }
        try attributes.requireRegularFile()
        let magic = try onDisk { () throws(SystemFailure) in
            [
                try opened.read(Keybag.magic.count, at: 0),
                try opened.read(Keybag.magic.count, at: VaultFormat.keybagLength),
            ]
        }
        identity = attributes.identity
        isEmpty = attributes.size == 0
        guard isEmpty || magic.contains(Keybag.magic) else {
            throw .file(.notAVault, .occupied(path: place.path.string))
        }
        guard attributes.owner == ProcessFacts.user else {
            throw .file(.insecurePermissions, .ownedByAnotherUser(.vaultPlace, user: attributes.owner))
        }
    }

    /// Throws `alreadyExists` when it is known to be another vault than `vault`.
    func check(is vault: VaultIdentifier) throws(TokenStorageError) {
        guard !isEmpty, let whole = try? KeybagCopies(reading: file).whole, !whole.isEmpty else { return }
        guard whole.contains(where: { $0.keybag.vault == vault }) else {
            throw .file(.alreadyExists, .exists(.otherVault))
        }
    }

    /// Whether the bytes of `other` are the same.
    func isIdentical(to other: any DiskFile) throws(TokenStorageError) -> Bool {
        let file = file
        return try onDisk { () throws(SystemFailure) in
            var offset = 0
            while true {
                let (left, right) = (
                    try file.read(1 << 20, at: offset), try other.read(1 << 20, at: offset)
                )
                if left != right { return false }
                if left.isEmpty { return true }
                offset += left.count
            }
        }
    }

    /// Whether nothing is behind `last`, where the log ends: a frame put behind what a crash left would say that it was
    /// durable.
    func isClean(_ copy: CheckedCopy, upTo last: ScannedFrame?) -> Bool {
        guard let last, let loaded = read(in: copy.place, copy.codec) else { return false }
        return loaded.stop == .clean && loaded.state.tail == last.end
    }

    /// How far its log has come; `nil` where that cannot be read.
    func state(in place: VaultLocation, _ codec: FrameCodec) -> LogState? { read(in: place, codec)?.state }

    private func read(in place: VaultLocation, _ codec: FrameCodec) -> LogLoader.Loaded? {
        let loader = LogLoader(
            location: place, codec: codec,
            anchor: Anchor(directory: nil, vault: codec.vault, key: codec.keys.anchor), lockTimeout: .zero)
        return try? loader.read(file, .walking, anchored: nil) { _, _ in }
    }

    /// Tells the readers of the file to look at the path, where a frame can be put behind the last one. Losing this
    /// to a crash loses nothing.
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
