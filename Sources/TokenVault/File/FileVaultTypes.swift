public import SystemPackage
package import TokenVaultPlatform

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A path of the file system, from swift-system; a literal or `FilePath(string)` makes one.
public typealias FilePath = SystemPackage.FilePath

/// How a vault is opened: a value the caller passes in, since the library reads no environment.
public struct FileVaultConfiguration: Sendable {
    /// Where the device key and the rollback anchors live, usually `$XDG_STATE_HOME/tokenvault`; `nil`
    /// for a vault without either: only portable policies, and `rollbackProtection` is `none`.
    public var stateDirectory: FilePath?
    /// How long a call waits for another process to let go of the vault.
    public var lockTimeout: Duration
    /// What a new passphrase slot costs to open.
    public var keyDerivationCost: KeyDerivationCost
    /// The clock for `created` and `modified`. Nothing is decided by it.
    public var clock: @Sendable () -> Date
    /// Whether a copy of a vault that this device knows at another path may be unlocked: it is read as it is, and
    /// nothing in it or in what this device keeps for the vault changes (`duplicateVault`).
    public var allowsOpeningCopies = false
    /// Whether to open a vault for reading only: no lock is taken, nothing is cut, mended or anchored, and what would
    /// write throws `readOnly`. Where the file cannot be written to, it is opened so by itself
    /// (``VaultStatus/readOnlyReason``).
    public var isReadOnly = false
    /// When a vault locks itself after an unlock; `nil`, the default, for never. Can be changed later
    /// (``BlockingFileVault/lockAutomatically(_:)``).
    public var automaticLock: AutomaticLock?
    /// What locks it; `nil` for this process's timer.
    package var lockTimer: LockTimer?
    /// How many frames may follow the index before a writer writes another.
    package var tailBound = VaultFormat.tailBound
    /// When to give up waiting for other processes, however often and whenever that begins; `nil` for no such time.
    package var deadline: Deadline?
    /// The memory that keys of passphrases are derived in, which this vault shares with others; `nil` for as much as a
    /// slot asks for.
    package var derivationBudget: DerivationBudget?
    /// How often to look for changes of other processes where the system does not tell of them.
    package var watchInterval: Duration = .seconds(1)

    /// A configuration.
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

/// What deriving a key from a passphrase costs (Argon2id).
public struct KeyDerivationCost: Hashable, Sendable {
    /// Passes over the memory, 3 to 12.
    public var passes: Int
    /// Memory in bytes, 64 MiB to 2 GiB.
    public var memory: Int

    /// A cost. Outside the bounds, making a slot throws `invalidArgument`.
    public init(passes: Int, memory: Int) {
        self.passes = passes
        self.memory = memory
    }

    /// The least: 3 passes over 64 MiB.
    public static let minimum = KeyDerivationCost(passes: 3, memory: 64 << 20)
    /// libsodium's MODERATE: 3 passes over 256 MiB.
    public static let moderate = KeyDerivationCost(passes: 3, memory: 256 << 20)
}

/// What opens a vault.
public enum UnlockMethod: Sendable {
    /// A passphrase of 1 byte to 1 MiB.
    case passphrase(Secret)
    /// The contents of a key file: 32 to 4,096 bytes that nobody can guess.
    case keyFile(Secret)
    /// The 32 random bytes that a person's keyring keeps for the vault: see ``KeyringItems``.
    case secretService(Secret)
    /// A recovery key. Its text is also taken where a passphrase is: ``passphrase(_:)`` opens a slot of this
    /// kind when it is given one.
    case recoveryKey(RecoveryKey)
}

extension UnlockMethod {
    /// The contents of the key file at `path`, but for a newline at the end; a systemd credential is such a
    /// file too. Throws `unavailable` when there is none, `invalidArgument` unless it has 32 to 4,096 bytes,
    /// and what the system failed with. Who may read the file is not checked: mounted secrets are often
    /// group-readable.
    public static func keyFile(at path: FilePath) throws(TokenStorageError) -> UnlockMethod {
        try during("key file") { () throws(TokenStorageError) in
            var bytes = try onDisk { () throws(SystemFailure) in try SmallFile.read(path, limit: 8_192).bytes
            }
            defer { SmallFile.wipe(&bytes) }
            if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            let method = UnlockMethod.keyFile(Secret(bytes))
            try method.check()
            return method
        }
    }
}

/// An unlock method of a vault, without what opens it.
public struct VaultSlot: Hashable, Sendable, Identifiable {
    /// What kind of method a slot is.
    public enum Kind: String, Hashable, Sendable {
        /// A passphrase.
        case passphrase
        /// A key file.
        case keyFile = "key-file"
        /// A key in a person's keyring, found there by the vault's identifier.
        case secretService = "secret-service"
        /// A recovery key.
        case recovery

        /// Whether a person has to be there and type something; a key file or a keyring opens by itself.
        public var isAttended: Bool { self == .passphrase || self == .recovery }
    }

    /// What a slot opens.
    public enum Scope: String, Hashable, Sendable {
        /// All that its kind of method leads to.
        case all
        /// Only what may be read after the first unlock: `afterFirstUnlock` and
        /// `afterFirstUnlockThisDeviceOnly` items.
        case afterFirstUnlock = "after-first-unlock"
    }

    /// The slot's number in its vault; not used again when the slot is removed.
    public let id: Int
    /// The kind of method.
    public let kind: Kind
    /// What the slot opens.
    public let scope: Scope
    /// When the slot was made.
    public let created: Date
    /// What deriving the key of a passphrase costs, which may be less than ``KeyDerivationCost/minimum`` in a slot that
    /// another program made; `nil` for other kinds.
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

/// What is known of a vault.
public struct VaultStatus: Sendable {
    /// Whether an older copy of the file would be noticed.
    public enum RollbackProtection: String, Sendable {
        /// A readable anchor on this device covers the vault.
        case anchored
        /// There is none, or it is damaged, or the vault is not unlocked yet.
        case none
    }

    /// Whether this-device-only items can be used.
    public enum Device: String, Sendable {
        /// The vault has keys for this device.
        case enrolled
        /// It has none, or the device key is not there.
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
    /// Whether an older copy of the file would be noticed.
    public var rollbackProtection: RollbackProtection
    /// Whether this-device-only items can be used; `nil` before the first unlock.
    public var device: Device?
    /// The unlock methods.
    public var slots: [VaultSlot]
    /// The slot that the vault was unlocked with; `nil` before the first unlock, or when it is removed by now.
    public var unlockedBy: VaultSlot?
    /// How many replaced values of an item compaction keeps (``BlockingFileVault/keepReplacedValues(_:)``).
    public var keptValues = 0
    /// What the memory has of the system's protection that keys of this process lie in; `nil` when there is
    /// no memory for any.
    public var keyMemory: KeyMemory.Protection?
    /// Copies of the vault that synchronising programs left beside it, by their names; empty when there are none.
    public var conflictingCopies: [String] = []
    /// Why nothing can be written; `nil` when it can be.
    public var readOnlyReason: ReadOnlyReason?
    /// What a person should know: a keybag copy that was damaged and healed, compaction put off …
    public var notes: [String]

    /// Adds what a person should know, if there is something.
    mutating func note(_ text: String?) {
        if let text { notes.append(text) }
    }
}

/// What `verify` found in a vault whose every byte it read.
public struct VerificationReport: Sendable {
    /// A place that is not as it was written.
    public struct Problem: Sendable, Hashable {
        /// The offset in the file, in bytes.
        public let offset: Int
        /// What is damaged; `nil` where something else kept the vault from being read.
        public let part: TokenStorageError.Reason.DamagedPart?
        /// What is wrong there.
        public let description: String

        /// Damage of `part` at `offset`.
        init(_ part: TokenStorageError.Reason.DamagedPart, at offset: Int) {
            self.offset = offset
            self.part = part
            description = part.name
        }

        /// That `error`, which names no part of the file, kept it from being read.
        init(_ error: TokenStorageError) {
            offset = 0
            part = nil
            description = error.underlying ?? error.code.summary
        }
    }

    /// Frames that were checked.
    public var frames: Int
    /// Items that are live.
    public var items: Int
    /// Items whose contents could only be checked by digest, because their keys are not held.
    public var checkedByDigestOnly: Int
    /// Bytes that were read.
    public var bytes: Int
    /// What is wrong, in the order of offsets. Empty for a clean file.
    public var problems: [Problem]
    /// What is not wrong but worth knowing: a torn frame that a crash left at the end.
    public var notes: [String]
    /// Whether this device has seen the vault go further than the file. Only ``VaultCopy/verify(progress:)`` says so:
    /// such a file does not open as the vault (`rolledBack`).
    public var isOlderThanSeen = false
    /// Whether the file lacks changes that this device has seen, and is not older: another copy was written to meanwhile. Only
    /// ``VaultCopy/verify(progress:)`` says so: such a file does not open as the vault (`forked`).
    public var isForked = false

    /// Whether the bytes are as they were written.
    public var isClean: Bool { problems.isEmpty }
}

/// What compaction did.
public struct CompactionReport: Sendable {
    /// The size before, in bytes.
    public var sizeBefore: Int
    /// The size after, in bytes.
    public var sizeAfter: Int
}
