import Synchronization
import SystemPackage
import TokenVault
import TokenVaultTesting
import VaultAgent

/// A vault in a real agent, as the conformance kit wants it. The other handle is another client of the agent, or the
/// vault's file opened beside it.
final class AgentSubject: ConformanceSubject {
    private static let passphrase = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))

    private let agent: TestAgent
    private let client: AgentVault
    private let isSharedWithFile: Bool
    private let isOriginal = Mutex(true)

    let capabilities: Set<ConformanceCapability>

    convenience init(sharedWithFile: Bool) throws {
        let agent = try TestAgent()
        self.init(agent, AgentVault(try agent.unlockedVault()), sharedWithFile)
    }

    private init(_ agent: TestAgent, _ client: AgentVault, _ isSharedWithFile: Bool) {
        self.agent = agent
        self.client = client
        self.isSharedWithFile = isSharedWithFile
        capabilities = Set(ConformanceCapability.allCases).subtracting([.passcode])
    }

    func storage(service: String) -> any TokenStorage { client.storage(service: service) }
    func blockingStorage(service: String) -> any BlockingTokenStorage {
        client.blocking.storage(service: service)
    }

    func anotherHandle() throws -> any ConformanceSubject {
        if isSharedWithFile { return FileHandle(vault: FileVault(try agent.home.open())) }
        return AgentSubject(agent, AgentVault(agent.vault()), false)
    }

    func setLockState(_ lockState: LockState) throws {
        let blocking = client.blocking
        switch lockState {
        case .unlocked: try unlock()
        case .afterFirstUnlock:
            try unlock()
            // The agent closes a locked vault in which nothing can be read, so one item stays readable.
            try blocking.storage(service: "kept open").store(
                token: "fake", for: "k", policy: .afterFirstUnlock)
            try blocking.lock()
        case .locked: try blocking.release()
        }
    }

    func setDevice(isOriginal: Bool) throws {
        self.isOriginal.withLock { $0 = isOriginal }
        try client.blocking.release()
        try unlock()
    }

    func close() { client.blocking.close() }

    private func unlock() throws {
        let state =
            isOriginal.withLock { $0 } ? agent.home.state : agent.home.path.appending("another-device")
        try client.blocking.unlock(with: TestHome.keyFile, stateDirectory: state)
    }

    private struct FileHandle: ConformanceSubject {
        let vault: FileVault
        func storage(service: String) -> any TokenStorage { vault.storage(service: service) }
    }
}
