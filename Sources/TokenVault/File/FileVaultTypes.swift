public import SystemPackage
package import TokenVaultPlatform

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A path of the file system, from swift-system; a literal or `FilePath(string)` makes one.
public typealias FilePath = SystemPackage.FilePath

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

/// The cost of deriving a key from a passphrase (Argon2id).
public struct KeyDerivationCost: Hashable, Sendable {
    /// Passes over the memory, 3 to 12.
    public var passes: Int
    /// Memory in bytes, 64 MiB to 2 GiB.
    public var memory: Int

    /// Creates a cost. Making a slot with a cost outside the bounds throws `invalidArgument`.
    public init(passes: Int, memory: Int) {
        self.passes = passes
        self.memory = memory
    }

    /// The least cost: 3 passes over 64 MiB.
    public static let minimum = KeyDerivationCost(passes: 3, memory: 64 << 20)
    /// libsodium's MODERATE: 3 passes over 256 MiB.
    public static let moderate = KeyDerivationCost(passes: 3, memory: 256 << 20)
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

/// An unlock method of a vault, without its secret.
public struct VaultSlot: Hashable, Sendable, Identifiable {
    /// The kind of an unlock method.
    public enum Kind: String, Hashable, Sendable {
        /// A passphrase.
        case passphrase
        /// A key file.
        case keyFile = "key-file"
        /// A key in the user's keyring, found there by the vault's identifier.
        case secretService = "secret-service"
        /// A recovery key.
        case recovery

        /// Whether the user has to type something; a key file or a keyring opens by itself.
        public var isAttended: Bool { self == .passphrase || self == .recovery }
    }

    /// The part of the items that a slot opens.
    public enum Scope: String, Hashable, Sendable {
        /// All items that its kind of method leads to.
        case all
        /// Only items readable after the first unlock: `afterFirstUnlock` and
        /// `afterFirstUnlockThisDeviceOnly` items.
        case afterFirstUnlock = "after-first-unlock"
    }

    /// The slot's number in its vault; not used again when the slot is removed.
    public let id: Int
    /// The kind of the slot's method.
    public let kind: Kind
    /// The part of the items that the slot opens.
    public let scope: Scope
    /// The date when the slot was made.
    public let created: Date
    /// The cost of deriving the passphrase's key; `nil` for other kinds. It may be less than
    /// ``KeyDerivationCost/minimum`` in a slot that another program made.
    public let cost: KeyDerivationCost?

    init(_ slot: Keybag.Slot) {
        id = Int(slot.identifier)
        kind =
            switch slot.kind {
            case .passphrase: .passphrase
            case .keyFile: .keyFile
            case .secretService: .secretService
            case .recovery: .recovery
            }
        scope = slot.scope == .all ? .all : .afterFirstUnlock
        created = Date(timeIntervalSince1970: Double(slot.created) / 1_000)
        cost = slot.kind == .passphrase ? KeyDerivationCost(slot.cost) : nil
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
    /// The number of items of all services; `nil` before the first unlock.
    public var items: Int?
    /// The size of the file in bytes.
    public var fileSize: Int
    /// Bytes of the file that compaction would free; `nil` before the first unlock.
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
}
