/// SCAFFOLD: signatures only; bodies come with the log.
public final class BlockingFileVault: Sendable {
    /// The path the vault was opened at.
    public let path: FilePath
    init(path: FilePath) { self.path = path }
    static func later(_ operation: String) -> TokenStorageError {
        TokenStorageError(.internalError, operation: operation, backend: "file")
    }

    /// Creates a vault at `path`, mode 0600, with `method` as its first slot, and returns it unlocked. Never
    /// overwrites (`alreadyExists`). Missing directories above are made, 0700.
    public static func create(
        at path: FilePath, unlockMethod method: UnlockMethod, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault { throw later("create") }

    /// Opens a vault, locked. `unavailable` when there is no file, `notAVault`, `corrupt`, `insecurePermissions`, `unsupportedFormat`.
    public static func open(
        at path: FilePath, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault { throw later("open") }

    /// Unlocks with one of the vault's slots. `wrongPassphrase`, `corrupt`, `rolledBack` …
    public func unlock(with method: UnlockMethod) throws(TokenStorageError) { throw Self.later("unlock") }
    /// Wipes the when-unlocked keys.
    public func lock() {}
    /// Wipes every key and closes the file; later calls throw `closed`.
    public func close() {}
    public func status() throws(TokenStorageError) -> VaultStatus { throw Self.later("status") }
    public func slots() throws(TokenStorageError) -> [VaultSlot] { throw Self.later("slots") }
    /// The vault must be unlocked (`locked`). `tooManySlots`.
    public func addSlot(_ method: UnlockMethod) throws(TokenStorageError) -> VaultSlot { throw Self.later("addSlot") }
    /// `slotNotFound`, `lastSlot`.
    public func removeSlot(_ id: Int) throws(TokenStorageError) { throw Self.later("removeSlot") }
    /// Replaces the passphrase of the slot that `current` opens (`wrongPassphrase` otherwise). O(1) beside key derivation.
    public func changePassphrase(from current: Secret, to new: Secret) throws(TokenStorageError) { throw Self.later("changePassphrase") }
    /// Reads every byte, changes nothing. The vault must have been unlocked once. `progress` gets bytes done and in all.
    public func verify(progress: ((Int, Int) -> Void)? = nil) throws(TokenStorageError) -> VerificationReport { throw Self.later("verify") }
    public func compact(progress: ((Int, Int) -> Void)? = nil) throws(TokenStorageError) -> CompactionReport { throw Self.later("compact") }
    /// Removes the vault, its anchor and its device key. No unlock needed.
    public static func destroy(at path: FilePath, configuration: FileVaultConfiguration) throws(TokenStorageError) { throw later("destroy") }
    /// The items of every service, by service then key.
    public func listAllServices(_ query: TokenQuery = .all) throws(TokenStorageError) -> TokenListing { throw Self.later("list") }
    /// One service's view.
    public func storage(service: String) -> any BlockingTokenStorage { fatalError("scaffold") }
}
