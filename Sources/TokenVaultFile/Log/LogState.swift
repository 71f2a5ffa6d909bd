internal import TokenVaultCore
internal import TokenVaultPlatform

/// The position of a process in a vault's log.
struct LogState {
    let file: any DiskFile
    let identity: FileIdentity
    /// The file's size: the bytes from `tail` to it are zeros.
    var size: Int
    /// The offset of the next frame.
    var tail: Int
    /// The last 16 bytes before `tail`: other bytes there mean that the file is not the one it was.
    var trailer: [UInt8]
    var chain: Digest
    /// The chain value behind the newest commit, for the anchor. A notice that the file is about to be
    /// replaced does not count: the file that takes its place does not descend from it.
    var head: Digest
    /// The known commits of this epoch: all of them when ``isWalked``.
    var trail = Ancestry()
    /// The length of the frame that lists earlier epochs; zero without one.
    var ancestryLength = 0
    /// The chain value behind that frame, or behind the first frame without one. These frames are read again later, and
    /// must be the same then.
    var frontChain = FrameCodec.chainStart
    /// Whether a commit follows the frames written together with the file: only then all of those are there.
    var isBeginningWhole = false
    /// This device's anchor at the last look, which this log descends from.
    var seen: AnchorSlot?
    /// Whether this device has read further than its anchor says, and could not record that yet.
    var isReadingDue = false
    /// The newest commit.
    var sequence: UInt64
    var epoch: Epoch
    var keybag: KeybagRecord
    /// The newest commit in the file that this one replaced.
    var baseSequence: UInt64 = 0
    var index = LogIndex()
    /// The number of frames behind the index block, or of all.
    var framesSinceIndex = 0
    /// An index block with nothing behind it yet. The next frame shows that its contents are durable.
    var newIndex: ScannedFrame?
    /// Whether the pointer does not lead to the index block in use.
    var isPointerDue = false
    /// Whether this process, or the maker of the file, has been along all of it.
    var isWalked = false
    /// Whether the newest frame says that the file is about to be replaced.
    var isSuperseded = false
    /// Whether this process, holding the lock, has seen that nothing but zeros lies behind `tail`.
    var isTailSettled = false
    /// Whether an anchor says how far the log must go, seen or not.
    var isAnchored = false
    /// The least end of the log at which compaction can be worth it again.
    var leastTailToCompact = 0
}

extension LogState {
    /// The roots that this device knows a file of this epoch to be under.
    var knownRoots: RootNames { seen?.roots(in: epoch) ?? RootNames() }

    /// The bytes of this file that a new one needs, without replaced values.
    private var neededBytes: Int { index.liveBytesAtMost + index.blockLength + ancestryLength }

    /// The bytes that a new file would not have.
    var deadBytes: Int { tail - VaultFormat.logStart - neededBytes }

    /// Returns the number of dead bytes that make a new file worthwhile, when it keeps `bytes` bytes of
    /// replaced values.
    func deadBytesWorthIt(keeping bytes: Int) -> Int { max(VaultFormat.compactionFloor, neededBytes + bytes) }

    /// Takes the frame that lists earlier epochs, which is right behind the first frame.
    mutating func takeAncestry(_ frame: ScannedFrame) {
        guard frame.header.previous == frontChain else { return }
        ancestryLength = frame.header.frameLength
        frontChain = frame.chain
    }
}
