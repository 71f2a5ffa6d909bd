internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The highest numbers of a vault, as far as its files and its anchor show. A new epoch of the log begins
/// behind all of them.
struct HighWaterMark {
    /// The number of the newest epoch.
    private(set) var epoch: UInt64 = 0
    /// The newest commit.
    private(set) var sequence: UInt64 = 0
    /// The newest generation of the keybag.
    private(set) var keybag: UInt64 = 0
    /// The last frame found in the last file that was read.
    private(set) var lastFrame: ScannedFrame?

    mutating func include(_ slot: AnchorSlot) {
        include(epoch: slot.epoch.number, sequence: slot.sequence, keybag: slot.keybagGeneration)
    }

    mutating func include(_ state: LogState) {
        include(epoch: state.epoch.number, sequence: state.sequence, keybag: state.keybag.generation)
    }

    mutating func include(sequence: UInt64) { include(epoch: 0, sequence: sequence, keybag: 0) }

    private mutating func include(epoch: UInt64, sequence: UInt64, keybag: UInt64) {
        self.epoch = max(self.epoch, epoch)
        self.sequence = max(self.sequence, sequence)
        self.keybag = max(self.keybag, keybag)
    }

    /// Takes in a file that may be damaged: its frames, as far as they authenticate.
    mutating func include(_ file: any DiskFile, _ codec: FrameCodec) throws(TokenStorageError) {
        lastFrame = nil
        var finder = try FrameFinder(file: file, codec: codec)
        try finder.forEach { (finding) throws(TokenStorageError) in
            guard case .frame(let frame) = finding else { return }
            lastFrame = frame
            include(sequence: frame.header.generation)
            try include(frame, file, codec)
        }
    }

    /// Takes in the epoch and keybag of a frame.
    mutating func include(
        _ frame: ScannedFrame, _ file: any DiskFile, _ codec: FrameCodec
    ) throws(TokenStorageError) {
        let type = RecordType(rawValue: frame.header.type)
        guard type == .genesis || type == .keybag else { return }
        let sealed = try onDisk { () throws(SystemFailure) in
            try file.read(frame.header.bodyLength, at: frame.offset + Frame.contentOffset)
        }
        guard let payload = try codec.openControl(sealed, header: frame.header) else { return }
        if type == .keybag, let record = try? KeybagRecord(decoding: payload) {
            include(epoch: 0, sequence: 0, keybag: record.generation)
        }
        if type == .genesis, let record = try? GenesisRecord(decoding: payload) {
            include(
                epoch: record.epoch.number, sequence: record.baseSequence, keybag: record.keybag.generation)
        }
    }

    /// The room that a new epoch leaves: numbers that no vault comes to, and that a forger cannot take.
    private static let room: UInt64 = 1 << 40

    /// Returns the epoch that begins behind all of this, and its first commit. Throws `corrupt` when the
    /// numbers are nearly used up, which only a forger with the vault's keys can cause.
    func next() throws(TokenStorageError) -> (epoch: Epoch, sequence: UInt64, keybag: UInt64) {
        guard max(epoch, sequence, keybag) < VaultFormat.largestSequence - Self.room else {
            throw .file(.corrupt, .damaged(.numbers))
        }
        return (Epoch(number: epoch + 1, identifier: .random()), sequence + 1, keybag + 1)
    }
}
