internal import Synchronization
public import SystemPackage
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

        /// Returns whether the log names this keybag, or the one before it: a change whose last steps a crash
        /// prevented.
        func isNamed(by record: KeybagRecord) -> Bool {
            copy.isNamed(by: record) || copy.isNext(after: record)
        }
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
