public import TokenVaultCore
internal import TokenVaultPlatform

/// The encrypted file vault.
///
/// ```swift
/// let vault = try FileVault.open(
///     at: "/home/me/.local/share/tokenvault/default.vault",
///     configuration: FileVaultConfiguration(stateDirectory: "/home/me/.local/state/tokenvault"))
/// try await vault.unlock(with: .passphrase(passphrase))
/// let storage = FileTokenStorage(vault, service: "com.example.app")
/// ```
///
/// Everything that ``BlockingFileVault`` can do, a task does through ``run(_:)``:
///
/// ```swift
/// let status = try await vault.run { try $0.status() }
/// ```
public final class FileVault: TokenKeychain {
    /// The same vault for code that may block.
    public let blocking: BlockingFileVault
    let thread: WorkerThread

    private init(_ blocking: BlockingFileVault, thread: WorkerThread) {
        self.blocking = blocking
        self.thread = thread
    }

    /// Creates the same vault as `blocking`, for tasks.
    public convenience init(_ blocking: BlockingFileVault) {
        self.init(blocking, thread: WorkerThread(name: "vault"))
    }

    /// Opens the vault at `path`, locked. See ``BlockingFileVault/open(at:configuration:)``.
    public static func open(
        at path: FilePath, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> FileVault {
        FileVault(
            try BlockingFileVault.open(at: path, configuration: configuration),
            thread: WorkerThread(name: "vault"))
    }

    /// Creates a vault and returns it unlocked. See
    /// ``BlockingFileVault/create(at:unlockMethod:configuration:)``.
    public static func create(
        at path: FilePath, unlockMethod: UnlockMethod, configuration: FileVaultConfiguration
    ) async throws(TokenStorageError) -> FileVault {
        let thread = WorkerThread(name: "vault")
        let vault = try await thread.result { () throws(TokenStorageError) in
            try BlockingFileVault.create(
                at: path, unlockMethod: unlockMethod, configuration: configuration)
        }
        return FileVault(vault, thread: thread)
    }

    /// Runs `body` with the blocking vault on the vault's own thread, one call at a time, and returns its
    /// result. Runs to its end when the task is cancelled. Throws the errors of `body`.
    public func run<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable (BlockingFileVault) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await thread.result { [blocking] () throws(Failure) in try body(blocking) }
    }

    /// Unlocks the vault with `method`, as ``BlockingFileVault/unlock(with:repairing:)``.
    public func unlock(with method: UnlockMethod) async throws(TokenStorageError) {
        try await run { (vault) throws(TokenStorageError) in try vault.unlock(with: method) }
    }

    /// Wipes the when-unlocked keys from memory. After-first-unlock items stay readable.
    public func lock() { blocking.lock() }

    /// Wipes every key and releases the file. Later calls throw `closed`.
    public func close() { blocking.close() }

    /// Returns the lock state. Throws `closed`.
    public func lockState() throws(TokenStorageError) -> LockState { try blocking.lockState() }

    public func storage(service: String) -> FileTokenStorage { FileTokenStorage(self, service: service) }

    public func services() async throws(TokenStorageError) -> ServiceListing {
        try await run { (vault) throws(TokenStorageError) in try vault.services() }
    }
}
