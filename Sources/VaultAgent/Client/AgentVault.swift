public import TokenVault
internal import TokenVaultPlatform

/// A vault that the agent holds, for tasks. Everything that ``BlockingAgentVault`` can do, a task does through
/// ``run(_:)``.
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

    public func storage(service: String) -> AgentTokenStorage { AgentTokenStorage(self, service: service) }

    public func services() async throws(TokenStorageError) -> ServiceListing {
        try await run { (vault) throws(TokenStorageError) in try vault.services() }
    }

    /// Runs `body` with the blocking vault on a thread that may wait, and returns its result. Throws the
    /// errors of `body`.
    public func run<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable (BlockingAgentVault) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await pool.result { [blocking] () throws(Failure) in try body(blocking) }
    }
}

extension BlockingAgentVault {
    /// Returns the services that have items, and the number of hidden items. Throws the same errors as
    /// `TokenStorage.list(_:)`.
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
    func result<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            run { continuation.resume(returning: Result { () throws(Failure) in try body() }) }
        }
        return try result.get()
    }
}
