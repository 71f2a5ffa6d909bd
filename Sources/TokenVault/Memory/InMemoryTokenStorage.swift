/// A storage in memory with the semantics of the file vault, for tests and short-lived processes.
///
/// Storages that share an ``InMemoryVault`` see each other's services, as storages of one vault file do.
/// Every call runs on the caller's thread. A write in a cancelled task throws `cancelled`.
public struct InMemoryTokenStorage: TokenStorage {
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
    /// The service that the keys belong to.
    public var service: String { blocking.service }
    /// All policies, with two exceptions. This-device-only policies are missing on a device that is not
    /// enrolled in the vault. The when-passcode-set policy is missing while there is no passcode.
    public var supportedPolicies: Set<AccessPolicy> { blocking.supportedPolicies }
    /// When unlocked, on this device only.
    public var defaultPolicy: AccessPolicy { blocking.defaultPolicy }

    /// Returns the lock state of the vault. Throws `closed`.
    public func lockState() async throws(TokenStorageError) -> LockState { try blocking.lockState() }

    /// See ``TokenStorage/secret(for:)``.
    public func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try blocking.secret(for: key)
    }

    /// See ``TokenStorage/item(for:)``.
    public func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try blocking.item(for: key)
    }

    /// See ``TokenStorage/metadata(for:)``.
    public func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try blocking.metadata(for: key)
    }

    /// See ``TokenStorage/list(_:)``.
    public func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try blocking.list(query)
    }

    /// See ``TokenStorage/commit(_:)``. Throws `cancelled` in a cancelled task.
    @discardableResult
    public func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try refuseWhenCancelled(CommitRules.operation(changes))
        return try blocking.commit(changes)
    }

    /// See ``TokenStorage/deleteAll()``. Throws `cancelled` in a cancelled task.
    @discardableResult
    public func deleteAll() async throws(TokenStorageError) -> Int {
        try refuseWhenCancelled("deleteAll")
        return try blocking.deleteAll()
    }

    /// See ``TokenStorage/changes()``. In a closed vault the sequence is already at its end.
    public func changes() -> TokenChanges { vault.hub.subscribe(service: service) }

    private func refuseWhenCancelled(_ operation: String) throws(TokenStorageError) {
        if Task.isCancelled {
            throw TokenStorageError(.cancelled, operation: operation, backend: InMemoryVault.backend)
        }
    }
}
