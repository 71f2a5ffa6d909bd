internal import TokenVaultPlatform

/// Where a process stands in a vault's log.
struct LogState {
    let file: any DiskFile
    let identity: FileIdentity
    /// The file's size: what lies between `tail` and it is zeros.
    var size: Int
    /// Where the next frame goes.
    var tail: Int
    /// The last 16 bytes before `tail`: other bytes there mean that the file is not the one it was.
    var trailer: [UInt8]
    var chain: Digest
    /// The chain value behind the newest commit, for the anchor. A frame that says that the file is about to be replaced is
    /// none: the file that takes its place does not descend from it.
    var head: Digest
    /// The commits of this epoch that are known: all of them when ``isWalked``.
    var trail = Ancestry()
    /// The length of the frame that tells of earlier epochs; zero without one.
    var ancestryLength = 0
    /// Whether a commit follows what was written together with the file: only then all of that is there.
    var isBeginningWhole = false
    /// What this device had anchored when it was last looked at, and what this log descends from.
    var seen: AnchorSlot?
    /// Whether this device has read further than its anchor says, and could not note that yet.
    var isReadingDue = false
    /// The newest commit.
    var sequence: UInt64
    var epoch: Epoch
    var keybag: KeybagRecord
    /// The newest commit in the file that this one took the place of.
    var baseSequence: UInt64 = 0
    var index = LogIndex()
    /// Frames behind the index block, or all.
    var framesSinceIndex = 0
    /// An index block that nothing follows yet. Its contents are known to be durable once something does.
    var newIndex: ScannedFrame?
    /// Whether the pointer does not lead to the index block in use.
    var isPointerDue = false
    /// Whether this process, or whoever made the file, has been along all of it.
    var isWalked = false
    /// Whether the newest frame says that the file is about to be replaced.
    var isSuperseded = false
    /// Whether this process, holding the lock, has seen that nothing but zeros lies behind `tail`.
    var isTailSettled = false
    /// Whether a commit of this process is between its `pwrite` and its `fdatasync`: readers then look
    /// no further than what is durable.
    var isCommitting = false
    /// How far the anchor says the log must go, seen or not.
    var isAnchored = false
    /// Where the log must end at least before compaction can be worth it again.
    var leastTailToCompact = 0
}

extension LogState {
    /// What a new file needs of this one, without values that were replaced.
    private var neededBytes: Int { index.liveBytesAtMost + index.blockLength + ancestryLength }

    /// What a new file would not have.
    var deadBytes: Int { tail - VaultFormat.logStart - neededBytes }

    /// How many dead bytes a new file is worth that has as many bytes of replaced values.
    func deadBytesWorthIt(keeping bytes: Int) -> Int { max(VaultFormat.compactionFloor, neededBytes + bytes) }
}
