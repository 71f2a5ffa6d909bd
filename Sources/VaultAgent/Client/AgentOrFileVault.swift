internal import Synchronization
public import TokenVault
internal import TokenVaultPlatform

/// A vault by way of the agent when the agent holds it, and by its own file otherwise.
///
/// Every call asks the agent first. The agent's answer about a vault that it holds is final: `locked` does
/// not open the file. The file is opened here only if no agent runs, or the agent does not hold the vault.
/// The first such call opens it with the function that was passed in. The file is closed and its keys are
/// wiped as soon as an agent holds the vault.
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
    /// Opens the vault's file and unlocks it if possible. Throws the reason that it could not be opened.
    public typealias Opener = @Sendable () throws(TokenStorageError) -> BlockingFileVault

    let agent: BlockingAgentVault
    let pool = WorkerPool(name: "agent-or-file", maximum: 8)
    private let open: Opener
    private let isOpening = Monitor(false)
    private let file = Mutex<BlockingFileVault?>(nil)

    /// Creates the vault at `path`, without asking the agent or opening the file yet. Waits for the agent for
    /// `timeout` at most.
    public init(
        at path: FilePath, agent place: AgentEndpoint, timeout: Duration = .seconds(30),
        open: @escaping Opener
    ) {
        agent = BlockingAgentVault(at: path, agent: place, timeout: timeout)
        self.open = open
    }

    /// Returns one service's view of the vault.
    public func storage(service: String) -> AgentOrFileTokenStorage {
        AgentOrFileTokenStorage(self, service: service)
    }

    /// Returns the services that have items, and the number of hidden items. Throws the same errors as
    /// `TokenStorage.list(_:)`, and the errors of opening the file.
    public func services() async throws(TokenStorageError) -> ServiceListing {
        try await pool.result { [self] () throws(TokenStorageError) in
            try perform(
                agent: { (vault) throws(TokenStorageError) in try vault.services() },
                file: { (vault) throws(TokenStorageError) in try vault.services() })
        }
    }

    /// Closes the connections to the agent and the file, if it is open; later calls throw `closed`.
    public func close() {
        agent.close()
        letGoOfFile()
    }

    /// Asks the agent, and then the file if no agent holds the vault: the agent has then not begun the
    /// request.
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

    /// Returns whether the agent holds the vault, and closes the file here if so. The agent then decides when
    /// the vault locks.
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

    /// Returns the vault, opened here. It is opened once, even when several threads ask.
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
