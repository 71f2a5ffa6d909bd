public import TokenVault
internal import TokenVaultPlatform

/// A vault that the agent holds, for tasks. Wraps ``BlockingAgentVault``, which documents the behavior and
/// errors of each call.
///
/// ```swift
/// let vault = AgentVault(
///     at: "/home/me/.local/share/tokenvault/default.vault",
///     agent: AgentEndpoint(directory: "/run/user/1000/tokenvault"))
/// let storage = vault.storage(service: "com.example.app")
/// ```
public final class AgentVault: TokenKeychain {
    /// The same vault for blocking code.
    public let blocking: BlockingAgentVault
    let pool = WorkerPool(name: "agent-call", maximum: 8)

    /// Wraps `blocking` for tasks.
    public init(_ blocking: BlockingAgentVault) { self.blocking = blocking }

    /// Creates the vault at `path`, by way of the agent at `place`, without asking the agent yet. A call
    /// waits for `timeout` at most.
    public convenience init(at path: FilePath, agent place: AgentEndpoint, timeout: Duration = .seconds(30)) {
        self.init(BlockingAgentVault(at: path, agent: place, timeout: timeout))
    }

    /// Returns one service's view of the vault.
    public func storage(service: String) -> AgentTokenStorage { AgentTokenStorage(self, service: service) }

    /// See ``BlockingAgentVault/listAllServices(_:)``.
    public func services() async throws(TokenStorageError) -> ServiceListing {
        try await pool.result { [blocking] () throws(TokenStorageError) in try blocking.services() }
    }

    /// See ``BlockingAgentVault/unlock(with:stateDirectory:lockingAfter:)``.
    public func unlock(
        with method: UnlockMethod, stateDirectory: FilePath?, lockingAfter idleTime: Duration?
    ) async throws(TokenStorageError) {
        try await pool.result { [blocking] () throws(TokenStorageError) in
            try blocking.unlock(with: method, stateDirectory: stateDirectory, lockingAfter: idleTime)
        }
    }

    /// See ``BlockingAgentVault/unlock(with:stateDirectory:)``.
    public func unlock(
        with method: UnlockMethod, stateDirectory: FilePath?
    ) async throws(TokenStorageError) {
        try await pool.result { [blocking] () throws(TokenStorageError) in
            try blocking.unlock(with: method, stateDirectory: stateDirectory)
        }
    }

    /// See ``BlockingAgentVault/lock()``.
    @discardableResult
    public func lock() async throws(TokenStorageError) -> Bool {
        try await pool.result { [blocking] () throws(TokenStorageError) in try blocking.lock() }
    }

    /// See ``BlockingAgentVault/isHeld()``.
    public func isHeld() async throws(TokenStorageError) -> Bool {
        try await pool.result { [blocking] () throws(TokenStorageError) in try blocking.isHeld() }
    }

    /// See ``BlockingAgentVault/close()``.
    public func close() { blocking.close() }
}

extension BlockingAgentVault {
    /// Returns the services that have items, and the number of hidden items. Throws the same errors as
    /// ``TokenVault/TokenStorage/list(_:)``.
    public func services() throws(TokenStorageError) -> ServiceListing {
        let listing = try listAllServices()
        let names = Set(listing.items.map { TokenKey($0.service) })
        return ServiceListing(
            services: names.sorted().map(\.name), hidden: listing.hidden, hiddenReasons: listing.hiddenReasons
        )
    }
}

extension WorkerPool {
    /// Returns the result of `body`, run on a thread of the pool.
    func result<Value: Sendable>(
        _ body: @escaping @Sendable () throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        let result: Result<Value, TokenStorageError> = await withCheckedContinuation { continuation in
            run { continuation.resume(returning: Result { () throws(TokenStorageError) in try body() }) }
        }
        return try result.get()
    }
}
