internal import Synchronization
public import SystemPackage
public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The encrypted file vault, for code that may block: every call runs on the caller's thread.
///
/// One file holds the items of any number of services; ``storage(service:)`` gives one service's view.
/// Several processes may have the same vault open. A vault opens locked; ``unlock(with:repairing:)`` reads
/// the log. The documentation catalog describes the file's format, and what a crash may leave of it.
public final class BlockingFileVault: Sendable {
    /// The path the vault was opened at.
    public let path: FilePath

    let location: VaultLocation
    let configuration: FileVaultConfiguration
    let hub = ChangeHub()
    let process = ProcessFacts.identifier
    private let vault: VaultIdentifier
    let state: Mutex<State>
    let lockDeadline: LockDeadline

    struct State {
        var session: VaultSession?
        var isClosed = false
        /// The keybag; its slots are unauthenticated until the first unlock.
        var keybag: Keybag
        var notes: [String] = []
        var secretStore: StateStore?
        /// The file as it was opened, for the first attempt to unlock.
        var opened: OpenedFile?
    }

    /// The vault's file, and the copies of its keybag as they were read.
    struct OpenedFile {
        var file: VaultFile
        var keybags: KeybagCopies
    }

    /// The vault's state on this device; `nil` without a state directory.
    var secretStore: StateStore? { state.withLock { $0.secretStore } }

    private init(
        location: VaultLocation, configuration: FileVaultConfiguration, keybag: Keybag,
        opened: OpenedFile? = nil
    ) {
        path = location.path
        vault = keybag.vault
        self.location = location
        self.configuration = configuration
        lockDeadline = LockDeadline(
            rule: configuration.automaticLock, timer: configuration.lockTimer ?? .shared)
        state = Mutex(
            State(
                keybag: keybag,
                secretStore: location.state.map { StateStore(directory: $0, vault: keybag.vault) },
                opened: opened))
    }

    // MARK: - Opening

    /// Opens the vault at `path`, locked. Makes a missing state directory, mode 0700. Throws `unavailable`
    /// when there is no vault, `notAVault`, `unsupportedFormat`, and `corrupt` when both copies of its keybag
    /// are damaged. Throws `insecurePermissions` unless the file is this user's, mode 0600, and no other user
    /// can write to the state directory.
    public static func open(
        at path: FilePath, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault {
        try during("open") { () throws(TokenStorageError) in
            try configuration.automaticLock?.check()
            var location = try VaultLocation.real(path, configuration: configuration, creating: false)
            // The state directory remembers what is read. Where it cannot be made, an older copy is not
            // noticed, as `status` says.
            if location.state == nil, let state = configuration.stateDirectory,
                !configuration.isReadOnly, !configuration.allowsOpeningCopies,
                (try? location.directory.attributes(of: location.name)) != nil
            {
                try? PosixDirectory.makeAll(state)
                location = try VaultLocation.real(path, configuration: configuration, creating: false)
            }
            return try open(at: location, configuration: configuration)
        }
    }

    package static func open(
        at location: VaultLocation, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault {
        try during("open") { () throws(TokenStorageError) in
            var location = location
            if configuration.isReadOnly { location.readOnlyReason = .requested }
            let opened = try VaultFile.open(location, for: .use)
            location.readOnlyReason = opened.readOnlyReason
            // If readers lock as well, a reader that cannot lock should fail now.
            if location.locksReaders { try WriterLock(file: opened.file).requireLocks() }
            let copies = try opened.keybags
            guard let newest = copies.whole.first else { throw .file(.corrupt) }
            // Writes of other machines show only to a reader that opens the file again.
            return BlockingFileVault(
                location: location, configuration: configuration, keybag: newest.keybag,
                opened: location.directory.isRemote ? nil : OpenedFile(file: opened, keybags: copies))
        }
    }

    /// Creates a vault at `path`, mode 0600, with `method` as its first slot, and returns it unlocked. Makes
    /// missing directories, mode 0700. The file appears whole or not at all. Throws `alreadyExists` rather
    /// than overwriting. Throws `unavailable` when this device knows a vault at `path` whose file is gone
    /// (``forget(at:configuration:keyring:)``). Throws `invalidArgument` for an empty passphrase, a key file
    /// outside 32 to 4,096 bytes or a cost outside its bounds. Also throws the system's failures.
    public static func create(
        at path: FilePath, unlockMethod method: UnlockMethod, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault {
        try during("create") { () throws(TokenStorageError) in
            try configuration.automaticLock?.check()
            if configuration.isReadOnly { throw ReadOnlyReason.requested.error }
            // This comes before a directory is made where a disk may be mounted.
            try requireUnknown(at: path, configuration: configuration)
            return try create(
                at: try VaultLocation.real(path, configuration: configuration, creating: true),
                unlockMethod: method, configuration: configuration)
        }
    }

    package static func create(
        at location: VaultLocation, unlockMethod method: UnlockMethod,
        configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault {
        try during("create") { () throws(TokenStorageError) in
            try create(VaultCreation(location: location, configuration: configuration), method)
        }
    }

    static func create(
        _ creation: VaultCreation, _ method: UnlockMethod
    ) throws(TokenStorageError) -> BlockingFileVault {
        let (keybag, ring) = try creation.create(with: method)
        let vault = BlockingFileVault(
            location: creation.location, configuration: creation.configuration, keybag: keybag)
        try vault.unlockNew(with: method, keybag, ring)
        return vault
    }

    // MARK: - Locking

    /// Wipes the when-unlocked keys. After-first-unlock items stay readable until ``close()``, the end of the
    /// process, or a key rotation by another program.
    public func lock() {
        guard !isInherited else { return }
        // This comes first: otherwise the time of an unlock in between would not count.
        lockDeadline.end()
        state.withLock { $0.session }?.ring.lock()
    }

    /// Wipes every key and releases the file; later calls throw `closed`.
    public func close() {
        guard !isInherited else { return }
        let session = state.withLock { state in
            defer {
                state.session = nil
                state.opened = nil
                state.isClosed = true
            }
            return state.session
        }
        session?.ring.wipeEverything()
        lockDeadline.end()
        hub.end()
        VaultWatcher.shared.release(ObjectIdentifier(self))
    }

    deinit {
        guard !isInherited else { return }
        hub.end()
        VaultWatcher.shared.release(ObjectIdentifier(self))
    }

    // MARK: - Using

    /// The vault's identifier: 32 random hexadecimal digits, the same for ever and in every copy.
    public var identifier: String { vault.hexadecimal }

    /// Returns one service's view of the vault. Each call checks the service: at most 1,024 bytes of UTF-8,
    /// else `invalidArgument`.
    public func storage(service: String) -> FileTokenStorage.Blocking {
        FileTokenStorage.Blocking(vault: self, service: service)
    }

    /// Returns the lock state. Throws `closed`.
    public func lockState() throws(TokenStorageError) -> LockState {
        try during("status") { () throws(TokenStorageError) in
            try checkUsable()
            let (session, isClosed) = state.withLock { ($0.session, $0.isClosed) }
            if isClosed { throw .file(.closed) }
            guard let session else { return .locked }
            return session.ring.isUnlocked ? .unlocked : .afterFirstUnlock
        }
    }

    /// Returns the items of every service, in the order of services and keys. Throws as
    /// ``TokenStorage/list(_:)``.
    public func listAllServices(_ query: TokenQuery = .all) throws(TokenStorageError) -> TokenListing {
        try during("list") { () throws(TokenStorageError) in
            try session().list(service: nil, query: query)
        }
    }

    /// Returns the services that have items, and the number of items that cannot be shown. Throws as
    /// ``TokenStorage/list(_:)``.
    public func services() throws(TokenStorageError) -> ServiceListing {
        ServiceListing(of: try listAllServices())
    }

    /// Moves the live items to a new file under the same name, which frees the space of replaced and deleted
    /// values. Seals again the values that are still under keys from before a key rotation, as far as the
    /// keys are held. `progress` gets the items done and the total. The vault must have been unlocked once
    /// (`locked`); no class keys are needed. Throws `noSpace`, `timedOut`, `corrupt`.
    public func compact(
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> CompactionReport {
        try during("compact") { () throws(TokenStorageError) in
            let session = try session()
            let report = try session.queue.alone { () throws(TokenStorageError) in
                try session.log.compact(progress: progress, resealing: session.resealing())
            }
            // Sealing again leaves older keys behind that nothing uses.
            try? removeUnusedKeys(session)
            return report
        }
    }

    /// Removes the vault at `path` and all its items. Also removes its anchor, its device key, its key in
    /// `keyring` and the files that restoring kept beside it. No unlock is needed. If the file at `path` is a
    /// copy, the state that belongs to the vault itself is kept. Throws `unavailable` when there is none,
    /// `unexpectedVault` when this device remembers another vault there, and `notAVault` for another file.
    /// Throws `timedOut` while another process writes. Errors of `keyring` come when the vault is gone
    /// already.
    public static func destroy(
        at path: FilePath, configuration: FileVaultConfiguration, keyring: (any KeyringItems)? = nil
    ) throws(TokenStorageError) {
        try during("destroy") { () throws(TokenStorageError) in
            if configuration.isReadOnly { throw ReadOnlyReason.requested.error }
            let location = try VaultLocation.real(path, configuration: configuration, creating: false)
            let removed = try VaultRemoval(location: location, lockTimeout: configuration.lockLimit)
                .remove()
            guard let keyring, let removed else { return }
            try clear(keyring, of: removed, isForgotten: false)
        }
    }

    /// Removes the keys of `vault` from `keyring`, and throws the error that prevents it. `isForgotten` says
    /// that the vault was forgotten, not removed.
    static func clear(
        _ keyring: any KeyringItems, of vault: VaultIdentifier, isForgotten: Bool
    ) throws(TokenStorageError) {
        do throws(TokenStorageError) {
            let vault = vault.hexadecimal
            for name in try keyring.keys(vault: vault).keys {
                try keyring.delete(vault: vault, name: name)
            }
        } catch {
            var error = error
            error.reason = .keyLeftInKeyring(isForgotten: isForgotten, error.reason)
            throw error
        }
    }
}

extension BlockingFileVault {
    /// Returns the identifier, like ``identifier``, that the file at `path` claims. The file's name, owner
    /// and mode do not matter, nor does damage elsewhere in it; links are followed. Nothing is authenticated.
    /// Returns `nil` for a file that is no vault or cannot be read.
    package static func identifier(ofFileAt path: FilePath) -> String? {
        guard SmallFile.isRegular(path), let file = try? PosixFile(reading: path) else { return nil }
        return (try? VaultFile(file).keybags)?.vaults.first?.hexadecimal
    }
}

extension BlockingFileVault {
    /// Takes in other processes' changes of the vault and its unlock methods, so that its status is current.
    /// Does not count as a use of an idle vault. Throws `closed`, `corrupt`, and the system's failures.
    ///
    /// With `thoroughly` false, the call only looks for another file in the vault's place: each read takes in
    /// the rest.
    package func refresh(thoroughly: Bool = true) throws(TokenStorageError) {
        try during("status") { () throws(TokenStorageError) in
            try checkUsable()
            guard let session = state.withLock({ $0.session }) else { return }
            guard thoroughly else { return try session.log.lookAtPlace() }
            try session.log.lookAtOthers()
            _ = try session.followKeybag()
        }
    }
}

extension BlockingFileVault {
    /// Reads every byte of the vault and checks it: both keybag copies, every frame and its place in the
    /// chain, every value, the zeros behind. Values whose keys are not held are checked by digest. Changes
    /// nothing; writers wait meanwhile. `progress` gets the bytes done and the total. The vault must have
    /// been unlocked once (`locked`). The report has the damage. Throws `rolledBack`, `unavailable`,
    /// `timedOut`, and the system's failures.
    public func verify(
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> VerificationReport {
        try during("verify") { () throws(TokenStorageError) in
            let session = try session()
            return try session.queue.alone { () throws(TokenStorageError) in
                try session.log.verify(progress: progress) { ContentChecker(ring: session.ring) }
            }
        }
    }
}

extension BlockingFileVault {
    /// The most replaced values of an item that a vault can keep.
    public static var mostKeptValues: Int { Keybag.mostKeptValues }

    /// Makes compaction keep `count` replaced values of each item, 0 to ``mostKeptValues``, from now on and
    /// on every device. With 0, as in a new vault, compaction removes them all. Values under another policy
    /// or other keys than the present value's are not kept. The next compaction removes the excess, not this
    /// call. Deleting an item always erases all of its values.
    ///
    /// The vault must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). Throws
    /// `invalidArgument` for another number, `conflict` when the vault got a new root key meanwhile,
    /// `readOnly`.
    public func keepReplacedValues(_ count: Int) throws(TokenStorageError) {
        try during("keep") { () throws(TokenStorageError) in
            guard let number = UInt16(exactly: count), count <= Keybag.mostKeptValues else {
                throw .file(.invalidArgument, .keptValues(most: Keybag.mostKeptValues))
            }
            let session = try session()
            let roots = try heldRoots(session)
            guard try currentKeybag(session).keptValues != number else { return }
            try replaceKeybag(session, roots: roots) { (keybag) in keybag.keptValues = number }
        }
    }
}
