public import SystemPackage
public import TokenVault
internal import TokenVaultPlatform

/// One service's view of a vault that the agent holds, or else of its file: see ``AgentOrFileVault``.
///
/// Each call chooses between the two again, and runs on a thread that may wait.
public struct AgentOrFileTokenStorage: BridgedTokenStorage {
    /// The same storage for blocking code.
    public let blocking: Blocking
    private let vault: AgentOrFileVault

    /// Creates the view of `service` of `vault`. The calls check the service name.
    public init(_ vault: AgentOrFileVault, service: String) {
        self.vault = vault
        blocking = Blocking(vault: vault, service: service)
    }

    public func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await asking(try .secret(key, of: service)) { (blocking) throws(TokenStorageError) in
            try blocking.secret(for: key)
        }
    }

    public func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await asking(try .item(key, of: service)) { (blocking) throws(TokenStorageError) in
            try blocking.item(for: key)
        }
    }

    public func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await asking(try .metadata(key, of: service)) { (blocking) throws(TokenStorageError) in
            try blocking.metadata(for: key)
        }
    }

    /// Runs the call on a thread that may wait. Throws `cancelled` when the task is already cancelled.
    public func run<Value: Sendable>(
        _ call: StorageCall, _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        try AgentTokenStorage.checkCancellation(call.operation)
        return try await vault.pool.result { [blocking] () throws(TokenStorageError) in try body(blocking) }
    }

    /// Returns the changes from now on. The changes come from the agent or the file, as chosen by
    /// this call; both report the changes of other writers. When the agent ends, the reader gets a request to
    /// list again, and more changes once an agent holds the vault. When the file is closed because an agent
    /// holds the vault, the sequence ends.
    public func changes() -> TokenChanges {
        if (try? vault.isHeldByAgent()) == false, let file = try? vault.openedFile() {
            return FileTokenStorage(file, service: service).changes()
        }
        return vault.agent.changes(service: service)
    }

    private func asking<Value: Sendable>(
        _ question: AgentQuestion<Value>,
        _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        try AgentTokenStorage.checkCancellation(question.name)
        return try await vault.pool.answer(
            vault.agent.begin(question),
            finish: { [vault] (begun) throws(TokenStorageError) in
                // Asking the agent again explains its error.
                guard let value = try? begun.finish() else { return nil }
                vault.letGoOfFile()
                return value
            },
            again: { [blocking] () throws(TokenStorageError) in try body(blocking) })
    }
}

extension AgentOrFileTokenStorage {
    /// The view of a service for blocking code: every call runs on the caller's thread.
    ///
    /// There are no supported policies when neither the agent nor the file is available.
    public struct Blocking: BlockingTokenStorage {
        let vault: AgentOrFileVault
        public let service: String

        public var supportedPolicies: Set<AccessPolicy> {
            (try? vault.perform(
                agent: { (vault) throws(TokenStorageError) in try vault.requiredFacts().supportedPolicies },
                file: { (vault) throws(TokenStorageError) in vault.storage(service: service).supportedPolicies
                })) ?? []
        }
        public var defaultPolicy: AccessPolicy {
            (try? vault.perform(
                agent: { (vault) throws(TokenStorageError) in try vault.requiredFacts().defaultPolicy },
                file: { (vault) throws(TokenStorageError) in vault.storage(service: service).defaultPolicy }))
                ?? .whenUnlockedThisDeviceOnly
        }

        public func lockState() throws(TokenStorageError) -> LockState {
            try vault.perform(
                agent: { (vault) throws(TokenStorageError) in try vault.requiredFacts().state },
                file: { (vault) throws(TokenStorageError) in try vault.lockState() })
        }

        public func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? {
            try using { (storage) throws(TokenStorageError) in try storage.secret(for: key) }
        }

        public func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? {
            try using { (storage) throws(TokenStorageError) in try storage.item(for: key) }
        }

        public func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
            try using { (storage) throws(TokenStorageError) in try storage.metadata(for: key) }
        }

        public func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
            try using { (storage) throws(TokenStorageError) in try storage.list(query) }
        }

        @discardableResult
        public func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit {
            try using { (storage) throws(TokenStorageError) in try storage.commit(changes) }
        }

        @discardableResult
        public func deleteAll() throws(TokenStorageError) -> Int {
            try using { (storage) throws(TokenStorageError) in try storage.deleteAll() }
        }

        private func using<Value>(
            _ body: (any BlockingTokenStorage) throws(TokenStorageError) -> Value
        ) throws(TokenStorageError) -> Value {
            try vault.perform(
                agent: { (vault) throws(TokenStorageError) in try body(vault.storage(service: service)) },
                file: { (vault) throws(TokenStorageError) in try body(vault.storage(service: service)) })
        }
    }
}

extension AgentOrFileTokenStorage: VaultBacked {
    /// The vault's path.
    public var vaultPath: FilePath { vault.agent.path }
}
