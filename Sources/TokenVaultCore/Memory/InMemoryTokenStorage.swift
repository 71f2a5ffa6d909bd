/// A storage in memory with the semantics of the file vault, for tests and short-lived processes.
///
/// Storages that share an ``InMemoryVault`` see each other's services, as storages of one vault file do.
/// Every call runs on the caller's thread. A write in a cancelled task throws `cancelled`.
public struct InMemoryTokenStorage: BridgedTokenStorage {
    /// The same storage for code that cannot wait.
    public let blocking: Blocking

    /// Creates a storage of `service` in a vault of its own. With an unusable service every call throws
    /// `invalidArgument`.
    public init(service: String) { self.init(vault: InMemoryVault(), service: service) }

    /// Creates a storage of `service` in `vault`.
    public init(vault: InMemoryVault, service: String) {
        blocking = Blocking(vault: vault, service: service)
    }

    /// The vault behind the storage. Tests use it to set lock state, device and passcode.
    public var vault: InMemoryVault { blocking.vault }
    /// Runs the call on the caller's thread. Throws `cancelled` for a write in a cancelled task.
    public func run<Value: Sendable>(
        _ call: StorageCall, _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        if call.kind == .write, Task.isCancelled {
            throw TokenStorageError(.cancelled, operation: call.operation, backend: InMemoryVault.backend)
        }
        return try body(blocking)
    }

    /// Returns the changes from now on. In a closed vault the sequence is already at its end.
    public func changes() -> TokenChanges { vault.hub.subscribe(service: service) }
}
