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
/// Asynchronous calls run on the vault's own thread, and run to their end when the task is cancelled. This
/// class wraps ``BlockingFileVault``, which describes the behaviour and the errors of each call.
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

    /// See ``BlockingFileVault/unlock(with:repairing:)``.
    public func unlock(with method: UnlockMethod) async throws(TokenStorageError) {
        let blocking = blocking
        try await thread.result { () throws(TokenStorageError) in try blocking.unlock(with: method) }
    }

    /// See ``BlockingFileVault/lock()``.
    public func lock() { blocking.lock() }

    /// See ``BlockingFileVault/close()``.
    public func close() { blocking.close() }

    /// See ``BlockingFileVault/lockState()``.
    public func lockState() throws(TokenStorageError) -> LockState { try blocking.lockState() }

    /// Returns one service's view of the vault.
    public func storage(service: String) -> FileTokenStorage { FileTokenStorage(self, service: service) }

    /// See ``BlockingFileVault/services()``.
    public func services() async throws(TokenStorageError) -> ServiceListing {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in try blocking.services() }
    }

    /// See ``BlockingFileVault/status()``.
    public func status() async throws(TokenStorageError) -> VaultStatus {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in try blocking.status() }
    }

    /// See ``BlockingFileVault/changePassphrase(from:to:)``.
    public func changePassphrase(from current: Secret, to new: Secret) async throws(TokenStorageError) {
        let blocking = blocking
        try await thread.result { () throws(TokenStorageError) in
            try blocking.changePassphrase(from: current, to: new)
        }
    }

    /// See ``BlockingFileVault/addSlot(_:scope:)``.
    public func addSlot(
        _ method: UnlockMethod, scope: VaultSlot.Scope? = nil
    ) async throws(TokenStorageError) -> VaultSlot {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in
            try blocking.addSlot(method, scope: scope)
        }
    }

    /// See ``BlockingFileVault/removeSlot(_:)``.
    public func removeSlot(_ id: Int) async throws(TokenStorageError) {
        let blocking = blocking
        try await thread.result { () throws(TokenStorageError) in try blocking.removeSlot(id) }
    }

    /// See ``BlockingFileVault/rotateKeys(keeping:removing:droppingOthers:progress:)``.
    public func rotateKeys(
        keeping methods: [UnlockMethod], removing ids: Set<Int> = [], droppingOthers: Bool = false
    ) async throws(TokenStorageError) -> RevocationReport {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in
            try blocking.rotateKeys(keeping: methods, removing: ids, droppingOthers: droppingOthers)
        }
    }

    /// See ``BlockingFileVault/rotatePassphrase(_:replacedBy:keeping:droppingOthers:progress:)``.
    public func rotatePassphrase(
        _ current: Secret, replacedBy new: Secret, keeping methods: [UnlockMethod] = [],
        droppingOthers: Bool = false
    ) async throws(TokenStorageError) -> RevocationReport {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in
            try blocking.rotatePassphrase(
                current, replacedBy: new, keeping: methods, droppingOthers: droppingOthers)
        }
    }

    /// See ``BlockingFileVault/devices()``.
    public func devices() async throws(TokenStorageError) -> [VaultDevice] {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in try blocking.devices() }
    }

    /// See ``BlockingFileVault/enrolDevice()``.
    public func enrolDevice() async throws(TokenStorageError) -> VaultDevice {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in try blocking.enrolDevice() }
    }

    /// See ``BlockingFileVault/removeDevice(_:)``.
    public func removeDevice(_ id: VaultDevice.ID) async throws(TokenStorageError) -> Int {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in try blocking.removeDevice(id) }
    }

    /// See ``BlockingFileVault/verify(progress:)``.
    public func verify() async throws(TokenStorageError) -> VerificationReport {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in try blocking.verify() }
    }

    /// See ``BlockingFileVault/keepReplacedValues(_:)``.
    public func keepReplacedValues(_ count: Int) async throws(TokenStorageError) {
        let blocking = blocking
        try await thread.result { () throws(TokenStorageError) in try blocking.keepReplacedValues(count) }
    }

    /// See ``BlockingFileVault/compact(progress:)``.
    public func compact() async throws(TokenStorageError) -> CompactionReport {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in try blocking.compact() }
    }
}

extension WorkerThread {
    /// Returns the result of `body`, run on the vault's thread.
    func result<Value: Sendable>(
        _ body: @escaping @Sendable () throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        let result: Result<Value, TokenStorageError> = await withCheckedContinuation { continuation in
            run { continuation.resume(returning: Result { () throws(TokenStorageError) in try body() }) }
        }
        return try result.get()
    }
}
