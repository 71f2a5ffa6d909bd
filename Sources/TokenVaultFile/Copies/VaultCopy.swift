internal import Synchronization
public import SystemPackage
public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A vault's file that is not used as the vault: a backup, a copy that a program left beside it, a damaged
/// vault.
///
/// The copy is only read, whatever its owner and place. ``restore(to:progress:)`` puts it in a vault's place.
/// Calls run on the caller's thread.
///
/// ```swift
/// let copy = try VaultCopy.open(at: "/backup/default.vault", configuration: configuration)
/// try copy.unlock(with: .passphrase(passphrase))
/// let report = try copy.restore(to: "/home/me/.local/share/tokenvault/default.vault")
/// ```
public final class VaultCopy: Sendable {
    /// The path the copy was opened at.
    public let path: FilePath

    let location: VaultLocation
    let configuration: FileVaultConfiguration
    let file: any DiskFile
    private let candidates: [KeybagCopy]
    private let opened = Mutex<[OpenedKeybag]>([])

    /// A keybag that an unlock method opened, and its keys.
    struct OpenedKeybag: Sendable {
        var copy: KeybagCopy
        var ring: KeyRing

        var keybag: Keybag { copy.keybag }
    }

    private init(_ location: VaultLocation, _ configuration: FileVaultConfiguration) throws(TokenStorageError)
    {
        path = location.path
        self.location = location
        self.configuration = configuration
        let opened = try VaultFile.open(location, for: .copy)
        file = opened.file
        candidates = try Self.keybags(in: opened)
    }

    /// Opens the file at `path`. `configuration` names the state directory of this device. With it, *this
    /// device only* items can be checked, and the last state that this device has seen is known. Throws
    /// `unavailable` when there is no such file, `notAVault`, `unsupportedFormat`. Throws `corrupt` when no
    /// copy of its keybag is whole: then nothing opens the file.
    public static func open(
        at path: FilePath, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> VaultCopy {
        try during("open") { () throws(TokenStorageError) in
            try open(
                at: try VaultLocation.real(path, configuration: configuration, creating: false),
                configuration: configuration)
        }
    }

    package static func open(
        at location: VaultLocation, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> VaultCopy {
        try VaultCopy(location, configuration)
    }

    private static func keybags(in opened: VaultFile) throws(TokenStorageError) -> [KeybagCopy] {
        do throws(TokenStorageError) {
            return try opened.keybags.whole
        } catch {
            guard error.code == .corrupt || error.code == .notAVault else { throw error }
            if let pieced = KeybagCopies.pieced(try opened.front.get()) { return [pieced] }
            let file = opened.file
            let first = try onDisk { () throws(SystemFailure) in
                try file.read(Frame.prefixLength, at: VaultFormat.logStart)
            }
            guard error.code == .corrupt || Frame.length(ofPrefix: first) != nil else { throw error }
            throw .file(.corrupt, .damaged(.bothKeybagsOfCopy))
        }
    }

    /// The vault's identifier: 32 hexadecimal digits, from the unauthenticated keybag.
    public var identifier: String { vault.hexadecimal }

    var vault: VaultIdentifier { candidates.first?.keybag.vault ?? VaultIdentifier(bytes: []) }

    /// The copy's unlock methods, from the unauthenticated keybag.
    public var slots: [VaultSlot] { candidates.first?.keybag.slots.map { VaultSlot($0) } ?? [] }

    /// Wipes the keys.
    public func close() {
        let gone = opened.withLock { opened in
            defer { opened = [] }
            return opened
        }
        for one in gone { one.ring.wipeEverything() }
    }

    deinit { close() }

    // MARK: - Unlocking

    /// Unlocks the copy with a method that opened the vault when the copy was made. Throws `wrongPassphrase`,
    /// `corrupt` for a keybag that does not authenticate, `resourcesExhausted`.
    public func unlock(with method: UnlockMethod) throws(TokenStorageError) {
        try during("unlock") { () throws(TokenStorageError) in
            try method.check()
            let secrets = try secretStore?.load() ?? KeybagKeys.DeviceSecrets()
            var failure = TokenStorageError.file(.wrongPassphrase)
            var fitting: [OpenedKeybag] = []
            for candidate in candidates {
                do throws(KeybagKeys.Failure) {
                    let ring = try KeybagKeys.open(
                        candidate.keybag, with: method, secrets: secrets,
                        within: configuration.derivationLimit)
                    fitting.append(OpenedKeybag(copy: candidate, ring: ring))
                } catch {
                    let error = KeybagKeys.error(for: error)
                    if error.code != .wrongPassphrase || error.reason != nil { failure = error }
                }
            }
            guard !fitting.isEmpty else { throw failure }
            close()
            let found = fitting
            opened.withLock { $0 = found }
        }
    }

    /// Unlocks the copy with a key that `keyring` keeps for the vault. Throws `locked` when the keyring keeps
    /// none and `wrongPassphrase` when no key opens a slot. Also throws the errors of `keyring`, and as
    /// ``unlock(with:)``.
    public func unlock(from keyring: any KeyringItems) throws(TokenStorageError) {
        try during("unlock") { () throws(TokenStorageError) in
            let keys = try keyring.keys(vault: identifier)
                .filter { $0.value.count == UnlockMethod.keyringKeyLength }
                .sorted { $0.key < $1.key }.prefix(Keybag.maximumSlots)
            guard !keys.isEmpty else {
                throw .file(.locked, .slots(.keyringHasNoKey))
            }
            for (_, key) in keys {
                do throws(TokenStorageError) {
                    return try unlock(with: .secretService(key))
                } catch {
                    guard error.code == .wrongPassphrase else { throw error }
                }
            }
            throw .file(.wrongPassphrase)
        }
    }

    /// Returns the keybags that were opened, newest first. Throws `locked` when none was.
    func openedKeybags() throws(TokenStorageError) -> [OpenedKeybag] {
        let opened = opened.withLock { $0 }
        guard !opened.isEmpty else { throw .file(.locked) }
        return opened
    }

    /// Keeps writers of the file away while it is read, where the file system has locks.
    func lockForReading(_ file: any DiskFile, until deadline: Deadline) throws(TokenStorageError) {
        do throws(TokenStorageError) {
            try WriterLock(file: file).take(.shared, until: deadline)
        } catch {
            if error.code == .timedOut { throw error }
        }
    }

    /// Throws `conflict` when the path no longer leads to the file with `identity`.
    func requireInPlace(_ identity: FileIdentity) throws(TokenStorageError) {
        let location = location
        let there = try onDisk { () throws(SystemFailure) in
            try location.directory.attributes(of: location.name)
        }
        guard there == nil || there?.identity == identity else {
            throw .file(.conflict, .changedMeanwhile(.copyFile))
        }
    }

    /// Returns whether a whole copy of the keybag is the one that the log's `record` names.
    func hasKeybag(namedBy record: KeybagRecord) -> Bool {
        candidates.contains { $0.isNamed(by: record) }
    }

    /// This device's state for the vault.
    var secretStore: StateStore? { location.state.map { StateStore(directory: $0, vault: vault) } }
}

extension VaultCopy {
    /// Puts this copy in the place of the vault at `path`, on purpose. From now on it is the vault, whatever
    /// was there and however far this device had seen the vault go.
    ///
    /// Every byte of the copy is checked first; values whose keys are not held are checked by digest. Then a
    /// new file is written, with the items still sealed, in a new epoch of the log. That epoch is behind
    /// everything in the copy, the anchor and the file in the place. The new file takes the vault's name in
    /// one step, so that a crash leaves one file or the other, whole. The replaced file is kept beside it
    /// under the name in the report. Processes that have the vault open go on with the restored vault; they
    /// are locked when it has another root key.
    ///
    /// The copy must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). `progress` gets
    /// the bytes or items done and the total. Throws `corrupt` for a damaged copy, and `wrongPassphrase` when
    /// the slot was removed before the copy was made. Throws `alreadyExists` when another vault is in the
    /// place, and `notAVault` when another kind of file is. Throws `duplicateVault` when this device knows
    /// the vault at yet another path, `noSpace`, `timedOut`. After these errors nothing has changed; after
    /// `outcomeUnknown` a power cut may take the restoration back.
    public func restore(
        to path: FilePath, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> RestoreReport {
        try during("restore") { () throws(TokenStorageError) in
            try restore(
                to: try VaultLocation.real(path, configuration: configuration, creating: true),
                progress: progress)
        }
    }

    package func restore(
        to place: VaultLocation, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> RestoreReport {
        try during("restore") { () throws(TokenStorageError) in
            try VaultRestoration(copy: self, place: place, isAdopting: false, progress: progress).run()
        }
    }
}

extension VaultCopy {
    /// Makes the file at this path the vault from now on, where the same vault is at two paths. A new epoch
    /// of the log begins in the file, behind all that either of the two has seen, and this device remembers
    /// the path. The other file stays unchanged and is the copy from then on; the report names it. Nothing of
    /// it is taken over.
    ///
    /// A vault that is at one path only may be adopted too. The requirements and errors are those of
    /// ``restore(to:progress:)``, except for `duplicateVault`. Throws `readOnly` where the file cannot be
    /// replaced.
    public func adopt(progress: ((Int, Int) -> Void)? = nil) throws(TokenStorageError) -> RestoreReport {
        try during("adopt") { () throws(TokenStorageError) in
            // This device's state for the vault may have to be made.
            let place =
                location.absolutePath == nil
                ? location : try VaultLocation.real(path, configuration: configuration, creating: true)
            return try VaultRestoration(copy: self, place: place, isAdopting: true, progress: progress).run()
        }
    }
}

extension VaultCopy {
    /// Merges `other`, a copy of the same vault that was written to meanwhile, into this file, which is in
    /// the vault's place. With `isRehearsal` nothing is written and the report says what would be.
    ///
    /// The merge starts from the newest commit that both files have. An item that only one file has changed
    /// since is taken from that file, and a deletion too. An item that both have changed keeps this file's
    /// value. The other file's value is stored under its own key, `KEY (conflict GENERATION)`. Policies stay.
    /// Unlock methods are those of this file.
    ///
    /// The result descends from both files, so that every device that has seen either of them accepts it.
    /// When an item could not be taken (``MergeReport/remaining``), a device that has seen it accepts the result
    /// only once it has merged its own file. The vault's previous file is kept beside the new one.
    ///
    /// Both must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). `progress` gets the items
    /// done and the total. Throws `unexpectedVault` for a copy of another vault, or where this device expects another
    /// vault at the path. Throws `duplicateVault` where this file is a copy of the vault itself. Throws
    /// `invalidArgument` where the two have no commit in common, and `corrupt` for a damaged file. Throws `forked`
    /// where neither file has all that this device has seen. Throws `conflict` when a file was replaced meanwhile, or
    /// when the copy's keys were rotated and the copy cannot replace this file unchanged. Also throws `conflict` when
    /// the merged file could not note all that would stay in the copy. Throws `tooManySlots`, `noSpace` and `timedOut`.
    /// After these errors nothing has changed; after `outcomeUnknown` a power cut may take the merge back.
    public func merge(
        _ other: VaultCopy, isRehearsal: Bool = false, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> MergeReport {
        try during("merge") { () throws(TokenStorageError) in
            // This device's state for the vault may have to be made.
            let place =
                location.absolutePath == nil || isRehearsal
                ? location : try VaultLocation.real(path, configuration: configuration, creating: true)
            return try VaultMerge(
                ours: self, theirs: other, place: place, isRehearsal: isRehearsal, progress: progress
            ).run()
        }
    }
}
