public import SystemPackage
public import TokenVault
internal import TokenVaultPlatform

/// One service's view of a vault that the agent holds.
///
/// Every call is a request to another process, which may take time. The call runs on a thread that may wait,
/// and the caller's task waits for that thread. An answer within 50 µs, as usual for one item, needs no such
/// thread.
///
/// Cancelling a task cancels a request that was not sent yet (`cancelled`). If the agent ends after a write
/// was sent, the call throws `outcomeUnknown`.
public struct AgentTokenStorage: TokenStorage {
    /// The same storage for blocking code.
    public let blocking: Blocking
    private let pool: WorkerPool

    /// Creates the view of `service` of `vault`. The calls check the service name.
    public init(_ vault: AgentVault, service: String) {
        blocking = vault.blocking.storage(service: service)
        pool = vault.pool
    }

    /// The service.
    public var service: String { blocking.service }
    /// The policies that the vault supports. Queries the agent; empty when no agent was ever reached.
    public var supportedPolicies: Set<AccessPolicy> { blocking.supportedPolicies }
    /// The vault's default policy. Queries the agent.
    public var defaultPolicy: AccessPolicy { blocking.defaultPolicy }

    /// See ``TokenVault/TokenStorage/lockState()``. Also `locked` when the agent does not hold the vault.
    public func lockState() async throws(TokenStorageError) -> LockState {
        try await waiting("status") { (blocking) throws(TokenStorageError) in try blocking.lockState() }
    }

    /// See ``TokenVault/TokenStorage/secret(for:)``.
    public func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await asking { (service) throws(TokenStorageError) in try .secret(key, of: service) }
    }

    /// See ``TokenVault/TokenStorage/item(for:)``.
    public func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await asking { (service) throws(TokenStorageError) in try .item(key, of: service) }
    }

    /// See ``TokenVault/TokenStorage/metadata(for:)``.
    public func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await asking { (service) throws(TokenStorageError) in try .metadata(key, of: service) }
    }

    /// See ``TokenVault/TokenStorage/list(_:)``.
    public func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try await waiting("list") { (blocking) throws(TokenStorageError) in try blocking.list(query) }
    }

    /// See ``TokenVault/TokenStorage/commit(_:)``. The agent accepts 128 MiB from all its clients at once
    /// (`resourcesExhausted`).
    @discardableResult
    public func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try await waiting(CommitRules.operation(changes)) { (blocking) throws(TokenStorageError) in
            try blocking.commit(changes)
        }
    }

    /// See ``TokenVault/TokenStorage/deleteAll()``.
    @discardableResult
    public func deleteAll() async throws(TokenStorageError) -> Int {
        try await waiting("delete") { (blocking) throws(TokenStorageError) in try blocking.deleteAll() }
    }

    /// See ``TokenVault/TokenStorage/changes()``. Subscribes at the agent before returning, within the
    /// vault's timeout. When the agent ends, the reader gets a request to list again, and another when an
    /// agent holds the vault.
    public func changes() -> TokenChanges { blocking.vault.changes(service: service) }

    private func asking<Value: Sendable>(
        _ make: (String) throws(TokenStorageError) -> AgentQuestion<Value>
    ) async throws(TokenStorageError) -> Value {
        let question = try make(service)
        try Self.checkCancellation(question.name)
        let vault = blocking.vault
        return try await pool.answer(
            vault.begin(question),
            finish: { (begun) throws(TokenStorageError) in try begun.finish() },
            again: { () throws(TokenStorageError) in try vault.answer(to: question) })
    }

    func waiting<Value: Sendable>(
        _ operation: String, _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        try Self.checkCancellation(operation)
        return try await pool.result { [blocking] () throws(TokenStorageError) in try body(blocking) }
    }

    static func checkCancellation(_ operation: String) throws(TokenStorageError) {
        guard Task.isCancelled else { return }
        throw TokenStorageError(.cancelled, operation: operation, backend: AgentEndpoint.backend)
    }
}

extension AgentTokenStorage {
    /// The view of a service for blocking code: every call runs on the caller's thread.
    public struct Blocking: BlockingTokenStorage {
        let vault: BlockingAgentVault
        /// The service.
        public let service: String

        /// See ``AgentTokenStorage/supportedPolicies``.
        public var supportedPolicies: Set<AccessPolicy> { vault.knownFacts?.supportedPolicies ?? [] }
        /// See ``AgentTokenStorage/defaultPolicy``.
        public var defaultPolicy: AccessPolicy {
            vault.knownFacts?.defaultPolicy ?? .whenUnlockedThisDeviceOnly
        }

        /// See ``TokenVault/TokenStorage/lockState()``.
        public func lockState() throws(TokenStorageError) -> LockState { try vault.lockState() }

        /// See ``TokenVault/TokenStorage/secret(for:)``.
        public func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? {
            try vault.answer(to: .secret(key, of: service))
        }

        /// Returns the secret of a vault that may not be held, with a single request.
        package func secretIfHeld(
            for key: TokenKey
        ) throws(TokenStorageError) -> AgentAnswer<Secret?> {
            try vault.answerIfHeld(to: .secret(key, of: service))
        }

        /// See ``TokenVault/TokenStorage/item(for:)``.
        public func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? {
            try vault.answer(to: .item(key, of: service))
        }

        /// See ``TokenVault/TokenStorage/metadata(for:)``.
        public func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
            try vault.answer(to: .metadata(key, of: service))
        }

        /// See ``TokenVault/TokenStorage/list(_:)``.
        public func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
            let rules = Validation(operation: "list", backend: AgentEndpoint.backend)
            try rules.check(service: service)
            try rules.check(query: query)
            return try vault.list(service: service, query)
        }

        /// See ``AgentTokenStorage/commit(_:)``.
        @discardableResult
        public func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit {
            let operation = CommitRules.operation(changes)
            let rules = Validation(operation: operation, backend: AgentEndpoint.backend)
            try rules.check(service: service)
            try rules.check(changes: changes)
            return try vault.perform(.commit(service: service, changes: changes), operation, isWrite: true) {
                (reader, _) throws(WireError) in try reader.commit()
            }
        }

        /// See ``TokenVault/TokenStorage/deleteAll()``.
        @discardableResult
        public func deleteAll() throws(TokenStorageError) -> Int {
            try Validation(operation: "delete", backend: AgentEndpoint.backend).check(service: service)
            return try vault.perform(.deleteAll(service: service), "delete", isWrite: true) {
                (reader, _) throws(WireError) in Int(try reader.integer(UInt32.self))
            }
        }
    }
}

extension AgentTokenStorage: VaultBacked {
    /// The vault's path.
    public var vaultPath: FilePath { blocking.vault.path }
}
