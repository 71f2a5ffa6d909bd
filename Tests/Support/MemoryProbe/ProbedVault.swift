import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent
import VaultAgentServer

/// What the probe unlocks and locks.
protocol ProbedVault {
    func unlock(with method: UnlockMethod) throws
    func lockNow() throws
    var probedStorage: any BlockingTokenStorage { get }
}

extension BlockingFileVault: ProbedVault {
    func unlock(with method: UnlockMethod) throws { try unlock(with: method, repairing: true) }
    func lockNow() throws { lock() }
    var probedStorage: any BlockingTokenStorage { storage(service: "probe") }
}

/// A vault that an agent in this process holds, and its client.
struct AgentVaultProbe: ProbedVault {
    private let server: AgentServer
    private let vault: BlockingAgentVault
    private let state: FilePath

    init(at path: FilePath, state: FilePath) throws {
        let place = AgentEndpoint(directory: state.removingLastComponent().appending("run"))
        let server = try AgentServer(limits: AgentLimits())
        let listening = try AgentListening(at: place)
        WorkerThread(name: "agent").run { _ = try? server.run(listening) }
        self.server = server
        self.state = state
        vault = BlockingAgentVault(at: path, agent: place)
    }

    func unlock(with method: UnlockMethod) throws { try vault.unlock(with: method, stateDirectory: state) }

    func lockNow() throws {
        guard try vault.lock() else { MemoryProbe.fail("the agent does not hold the vault") }
    }

    var probedStorage: any BlockingTokenStorage { vault.storage(service: "probe") }
}
