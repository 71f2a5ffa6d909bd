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
public struct AgentTokenStorage: BridgedTokenStorage {
    /// The same storage for blocking code.
    public let blocking: Blocking
    private let pool: WorkerPool

    /// Creates the view of `service` of `vault`. The calls check the service name.
    public init(_ vault: AgentVault, service: String) {
        blocking = vault.blocking.storage(service: service)
        pool = vault.pool
    }

    public func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await asking { (service) throws(TokenStorageError) in try .secret(key, of: service) }
    }

    public func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await asking { (service) throws(TokenStorageError) in try .item(key, of: service) }
    }

    public func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await asking { (service) throws(TokenStorageError) in try .metadata(key, of: service) }
    }

    /// Runs the call on a thread that may wait. Throws `cancelled` when the task is already cancelled.
    public func run<Value: Sendable>(
        _ call: StorageCall, _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        try Self.checkCancellation(call.operation)
        return try await pool.result { [blocking] () throws(TokenStorageError) in try body(blocking) }
    }

    /// Returns the changes from now on. Subscribes at the agent before returning, within the
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

    static func checkCancellation(_ operation: String) throws(TokenStorageError) {
        guard Task.isCancelled else { return }
        throw TokenStorageError(.cancelled, operation: operation, backend: AgentEndpoint.backend)
    }
}

extension AgentTokenStorage {
    /// The view of a service for blocking code: every call runs on the caller's thread.
    ///
    /// The supported policies and the default policy are those of the vault. Both properties query the agent. There are
    /// no supported policies when no agent was ever reached. The lock state is also `locked` when the agent does not
    /// hold the vault. A commit throws `resourcesExhausted` beyond the 128 MiB that the agent accepts from all its
    /// clients at once.
    public struct Blocking: BlockingTokenStorage {
        let vault: BlockingAgentVault
        public let service: String

        public var supportedPolicies: Set<AccessPolicy> { vault.knownFacts?.supportedPolicies ?? [] }
        public var defaultPolicy: AccessPolicy {
            vault.knownFacts?.defaultPolicy ?? .whenUnlockedThisDeviceOnly
        }

        public func lockState() throws(TokenStorageError) -> LockState { try vault.lockState() }

        public func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? {
            try vault.answer(to: .secret(key, of: service))
        }

        /// Returns the secret of a vault that may not be held, with a single request.
        package func secretIfHeld(
            for key: TokenKey
        ) throws(TokenStorageError) -> AgentAnswer<Secret?> {
            try vault.answerIfHeld(to: .secret(key, of: service))
        }

        public func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? {
            try vault.answer(to: .item(key, of: service))
        }

        public func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
            try vault.answer(to: .metadata(key, of: service))
        }

        public func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
            let rules = Validation(operation: "list", backend: AgentEndpoint.backend)
            try rules.check(service: service)
            try rules.check(query: query)
            return try vault.list(service: service, query)
        }

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
