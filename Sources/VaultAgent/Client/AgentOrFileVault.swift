internal import Synchronization
public import TokenVault
internal import TokenVaultPlatform

/// A vault by way of the agent when the agent holds it, and by its own file when no agent does.
///
/// Every call asks the agent first. What the agent says of a vault that it holds is final: `locked` is no reason to open
/// the file. Only when no agent runs, or it does not hold the vault, the vault is opened here, the first time by the
/// function that was given for it. It is let go of, with its keys, as soon as an agent is found to hold it.
///
/// ```swift
/// let vault = AgentOrFileVault(
///     at: "/home/me/.local/share/tokenvault/default.vault",
///     agent: AgentEndpoint(directory: "/run/user/1000/tokenvault"))
/// {
///     let vault = try BlockingFileVault.open(
///         at: "/home/me/.local/share/tokenvault/default.vault",
///         configuration: FileVaultConfiguration(stateDirectory: "/home/me/.local/state/tokenvault"))
///     try vault.unlock(with: .passphrase(passphrase))
///     return vault
/// }
/// let storage = vault.storage(service: "com.example.app")
/// ```
public final class AgentOrFileVault: TokenKeychain {
    /// Opens the vault's file, and unlocks it if it can; throws what keeps it from that.
    public typealias Opener = @Sendable () throws(TokenStorageError) -> BlockingFileVault

    let agent: BlockingAgentVault
    let pool = WorkerPool(name: "agent-or-file", maximum: 8)
    private let open: Opener
    private let isOpening = Monitor(false)
    private let file = Mutex<BlockingFileVault?>(nil)

    /// The vault at `path`. Nothing is asked or opened yet. The agent is waited for as long as `timeout`.
    public init(
        at path: FilePath, agent place: AgentEndpoint, timeout: Duration = .seconds(30),
        open: @escaping Opener
    ) {
        agent = BlockingAgentVault(at: path, agent: place, timeout: timeout)
        self.open = open
    }

    /// One service's view of the vault.
    public func storage(service: String) -> AgentOrFileTokenStorage {
        AgentOrFileTokenStorage(self, service: service)
    }

    /// The services that have items, and how many items cannot be shown. Throws as
    /// ``TokenVault/TokenStorage/list(_:)``, and what opening the file throws.
    public func services() async throws(TokenStorageError) -> ServiceListing {
        try await pool.result { [self] () throws(TokenStorageError) in
            try perform(
                agent: { (vault) throws(TokenStorageError) in try vault.services() },
                file: { (vault) throws(TokenStorageError) in try vault.services() })
        }
    }

    /// Lets go of the agent's connections and of the file, if it was opened; later calls throw `closed`.
    public func close() {
        agent.close()
        letGoOfFile()
    }

    /// Asks the agent, and the file when it turns out that no agent holds the vault: what was asked was not begun then.
    func perform<Value>(
        agent ask: (BlockingAgentVault) throws(TokenStorageError) -> Value,
        file use: (BlockingFileVault) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        do throws(TokenStorageError) {
            let value = try ask(agent)
            letGoOfFile()
            return value
        } catch {
            guard error.backend == AgentEndpoint.backend, error.code == .locked || error.code == .unavailable,
                try !isHeldByAgent()
            else { throw error }
        }
        return try use(try openedFile())
    }

    /// Whether the agent holds the vault. Then what was opened here is let go of: the person decides there when it
    /// locks.
    func isHeldByAgent() throws(TokenStorageError) -> Bool {
        guard try agent.heldFacts() != nil else { return false }
        letGoOfFile()
        return true
    }

    func letGoOfFile() {
        let vault = file.withLock { file in
            defer { file = nil }
            return file
        }
        vault?.close()
    }

    /// The vault, opened here; once, also when several threads ask.
    func openedFile() throws(TokenStorageError) -> BlockingFileVault {
        _ = isOpening.wait { isOpening in
            if isOpening { return nil as Bool? }
            isOpening = true
            return true
        }
        defer { isOpening.announce { $0 = false } }
        if let vault = file.withLock({ $0 }), (try? vault.lockState()) != nil { return vault }
        let vault = try open()
        file.withLock { $0 = vault }
        return vault
    }
}
