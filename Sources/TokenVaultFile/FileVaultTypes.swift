public import SystemPackage
public import TokenVaultCore
package import TokenVaultCrypto
package import TokenVaultPlatform

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The settings for opening a vault. The caller passes them in, since the library reads no environment.
public struct FileVaultConfiguration: Sendable {
    /// The directory of the device key and the rollback anchors, usually `$XDG_STATE_HOME/tokenvault`; `nil`
    /// for a vault without either. Such a vault has only portable policies, and its `rollbackProtection` is
    /// `none`.
    public var stateDirectory: FilePath?
    /// The longest time that a call waits for another process to release the vault.
    public var lockTimeout: Duration
    /// The cost of a new passphrase slot.
    public var keyDerivationCost: KeyDerivationCost
    /// The clock for `created` and `modified`. No decision depends on it.
    public var clock: @Sendable () -> Date
    /// Whether a copy of a vault that this device knows at another path may be unlocked; otherwise unlocking
    /// throws `duplicateVault`. The copy is only read: nothing in it, or in this device's state for the
    /// vault, changes.
    public var allowsOpeningCopies = false
    /// Whether to open a vault for reading only. The vault then cuts, repairs and anchors nothing, works
    /// without a lock, and throws `readOnly` for a write. A file that cannot be written to is opened this way
    /// by itself (``VaultStatus/readOnlyReason``).
    public var isReadOnly = false
    /// The rule by which a vault locks itself after an unlock; `nil`, the default, for never. It can be
    /// changed later (``BlockingFileVault/lockAutomatically(_:)``).
    public var automaticLock: AutomaticLock?
    /// The timer that locks the vault; `nil` for this process's timer.
    package var lockTimer: LockTimer?
    /// The most frames behind the index before a writer writes another index.
    package var tailBound = VaultFormat.tailBound
    /// The time to stop waiting for other processes, for all waits together; `nil` for no such time.
    package var deadline: Deadline?
    /// The memory for deriving keys of passphrases, which this vault shares with others; `nil` for as much as
    /// a slot asks for.
    package var derivationBudget: DerivationBudget?
    /// The function that derives keys of passphrases. Tests that open one slot thousands of times derive its key once.
    package var passwordHash: PasswordHash.Derivation = PasswordHash.derive
    /// The interval of looks for changes of other processes, where the system does not report them.
    package var watchInterval: Duration = .seconds(1)

    /// Creates a configuration.
    public init(
        stateDirectory: FilePath?, lockTimeout: Duration = .seconds(10),
        keyDerivationCost: KeyDerivationCost = .moderate, automaticLock: AutomaticLock? = nil,
        clock: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.stateDirectory = stateDirectory
        self.lockTimeout = lockTimeout
        self.keyDerivationCost = keyDerivationCost
        self.automaticLock = automaticLock
        self.clock = clock
    }
}

/// A method that opens a vault.
public enum UnlockMethod: Sendable {
    /// A passphrase of 1 byte to 1 MiB.
    case passphrase(Secret)
    /// The contents of a key file: 32 to 4,096 bytes that cannot be guessed.
    case keyFile(Secret)
    /// The 32 random bytes that the user's keyring keeps for the vault: see ``KeyringItems``.
    case secretService(Secret)
    /// A recovery key. Its text is also accepted as a passphrase: ``passphrase(_:)`` with such a text opens a
    /// slot of this kind.
    case recoveryKey(RecoveryKey)
}

extension UnlockMethod {
    /// Returns the contents of the key file at `path`, without a newline after its first 32 bytes or more. A systemd
    /// credential is such a file too. Throws `unavailable` when there is none, `invalidArgument` unless it has 32 to 4,096
    /// bytes, and the system's failures. The file's permissions are not checked: mounted secrets are often
    /// group-readable.
    public static func keyFile(at path: FilePath) throws(TokenStorageError) -> UnlockMethod {
        try during("key file") { () throws(TokenStorageError) in
            var bytes = try onDisk { () throws(SystemFailure) in try SmallFile.read(path, limit: 8_192).bytes
            }
            defer { SmallFile.wipe(&bytes) }
            // A random key of the least length may end in that byte.
            if bytes.count > 32, bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            let method = UnlockMethod.keyFile(Secret(bytes))
            try method.check()
            return method
        }
    }
}

/// The status of a vault.
public struct VaultStatus: Sendable {
    /// The protection against an older copy of the file.
    public enum RollbackProtection: String, Sendable {
        /// A readable anchor on this device covers the vault.
        case anchored
        /// There is no anchor, the anchor is damaged, or the vault is not unlocked yet.
        case none
    }

    /// The usability of this-device-only items.
    public enum Device: String, Sendable {
        /// The vault has keys for this device.
        case enrolled
        /// The vault has no keys for this device, or the device key is missing.
        case notEnrolled
    }

    /// The lock state.
    public var state: LockState
    /// The number of items of all services; `nil` before the first unlock, and while other keys have replaced those of this
    /// handle.
    public var items: Int?
    /// The size of the file in bytes.
    public var fileSize: Int
    /// Bytes of the file that compaction would free; `nil` where ``items`` is.
    public var reclaimable: Int?
    /// The protection against an older copy of the file.
    public var rollbackProtection: RollbackProtection
    /// The usability of this-device-only items; `nil` before the first unlock.
    public var device: Device?
    /// The unlock methods.
    public var slots: [VaultSlot]
    /// The slot that the vault was unlocked with; `nil` before the first unlock, or when the slot is removed
    /// by now.
    public var unlockedBy: VaultSlot?
    /// The number of replaced values of an item that compaction keeps
    /// (``BlockingFileVault/keepReplacedValues(_:)``).
    public var keptValues = 0
    /// The system's protection of the memory that holds this process's keys; `nil` when there is no memory
    /// for keys.
    public var keyMemory: KeyMemory.Protection?
    /// The names of the vault's copies that synchronising programs left beside it; empty when there are none.
    public var conflictingCopies: [String] = []
    /// The reason that nothing can be written; `nil` when the vault is writable.
    public var readOnlyReason: ReadOnlyReason?
    /// Notes for the user: a damaged keybag copy that was repaired, a compaction that was put off …
    public var notes: [String]

    /// Adds a note for the user, if there is one.
    mutating func note(_ text: String?) {
        if let text { notes.append(text) }
    }
}

/// The findings of `verify`, which reads every byte of a vault.
public struct VerificationReport: Sendable {
    /// A damaged place.
    public struct Problem: Sendable, Hashable {
        /// The offset in the file, in bytes.
        public let offset: Int
        /// The damaged part; `nil` where another failure kept the vault from being read.
        public let part: TokenStorageError.Reason.DamagedPart?
        /// The description of the damage.
        public let description: String

        /// Creates a problem for damage of `part` at `offset`.
        init(_ part: TokenStorageError.Reason.DamagedPart, at offset: Int) {
            self.offset = offset
            self.part = part
            description = part.name
        }

        /// Creates a problem for `error`, which names no part of the file and kept the vault from being read.
        init(_ error: TokenStorageError) {
            offset = 0
            part = nil
            description = error.underlying ?? error.code.summary
        }
    }

    /// The number of checked frames.
    public var frames: Int
    /// The number of live items.
    public var items: Int
    /// The number of items whose contents were checked only by digest, because their keys are not held.
    public var checkedByDigestOnly: Int
    /// The number of bytes read.
    public var bytes: Int
    /// The problems, in the order of offsets; empty for a clean file.
    public var problems: [Problem]
    /// Notes that are no problems: a torn frame that a crash left at the end.
    public var notes: [String]
    /// Whether this device has seen the vault go further than the file. Only ``VaultCopy/verify(progress:)``
    /// says so: such a file does not open as the vault (`rolledBack`).
    public var isOlderThanSeen = false
    /// Whether the file lacks changes that this device has seen, and is not older: another copy was written
    /// to meanwhile. Only ``VaultCopy/verify(progress:)`` says so: such a file does not open as the vault
    /// (`forked`).
    public var isForked = false

    /// Whether the file has no problem.
    public var isClean: Bool { problems.isEmpty }
}

/// The result of a compaction.
public struct CompactionReport: Sendable {
    /// The size before, in bytes.
    public var sizeBefore: Int
    /// The size after, in bytes.
    public var sizeAfter: Int
    /// The number of replaced values that the vault keeps and that were damaged: they are gone.
    public var damagedValues = 0
}
