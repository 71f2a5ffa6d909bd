import Glibc
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import TokenVaultTesting
import VaultAgent

@Suite(.tags(.programs), .from(.usual)) struct AgentOrFileTests {
    let home: TestHome
    let openings: Counter

    init() throws {
        home = try TestHome()
        openings = Counter()
    }

    final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func add() { count.withLock { $0 += 1 } }
    }

    private func vault() -> AgentOrFileVault {
        AgentOrFileVault(at: home.vault, agent: home.place) { [home, openings] () throws(TokenStorageError) in
            openings.add()
            let vault = try BlockingFileVault.open(at: home.vault, configuration: home.configuration)
            try vault.unlock(with: TestHome.keyFile)
            return vault
        }
    }

    @Test func withoutAnAgentTheFileIsOpenedOnce() async throws {
        let storage = vault().storage(service: "s")
        try await storage.store(token: "a", for: "k")
        #expect(try await storage.retrieve(for: "k") == "a")
        #expect(try storage.blocking.retrieve(for: "k") == "a")
        #expect(openings.value == 1)
    }

    @Test func anAgentThatHoldsTheVaultIsAskedAlone() async throws {
        let agent = try TestAgent(in: home)
        let own = try agent.unlockedVault()
        let storage = vault().storage(service: "s")
        try await storage.store(token: "a", for: "k")
        #expect(try own.storage(service: "s").retrieve(for: "k") == "a")
        try own.lock()
        let error = await #expect(throws: TokenStorageError.self) { try await storage.retrieve(for: "k") }
        // The agent's lock is final: the opener could read the file, but is not asked.
        #expect(error?.code == .locked)
        #expect(openings.value == 0)
    }

    @Test func anAgentThatDoesNotHoldItLeavesItToTheFile() async throws {
        let agent = try TestAgent(in: home)
        let vault = vault()
        let storage = vault.storage(service: "s")
        try await storage.store(token: "a", for: "k")
        #expect(openings.value == 1)
        // From now on the agent holds the vault, and a lock in the agent counts.
        let own = try agent.unlockedVault()
        #expect(try await storage.retrieve(for: "k") == "a")
        try own.lock()
        await #expect(throws: TokenStorageError.self) { try await storage.retrieve(for: "k") }
        // Without the agent, the file is opened again.
        agent.process.end(SIGKILL)
        #expect(try await storage.retrieve(for: "k") == "a")
        #expect(openings.value == 2)
    }

    @Test func aPlaceThatIsNotOursIsNoReasonForTheFile() async throws {
        try PosixDirectory.makeAll(home.place.directory)
        chmod(home.place.directory.string, 0o755)
        let storage = vault().storage(service: "s")
        let error = await #expect(throws: TokenStorageError.self) { try await storage.retrieve(for: "k") }
        #expect(error?.code == .insecurePermissions && openings.value == 0)
    }

    @Test(arguments: TokenStorageConformance.checks, [true, false])
    func keepsTheContract(_ check: ConformanceCheck, _ isHeld: Bool) async throws {
        let subject = try EitherSubject(isHeld: isHeld)
        if check.applies(to: subject) { try await check.run(on: subject) }
    }
}

/// A vault of which it does not matter whether an agent holds it.
private final class EitherSubject: ConformanceSubject {
    private let home: TestHome
    private let agent: TestAgent?
    private let vault: AgentOrFileVault
    let capabilities: Set<ConformanceCapability> = [.blockingView, .anotherHandle]

    convenience init(isHeld: Bool) throws {
        let home = try TestHome()
        let agent = isHeld ? try TestAgent(in: home) : nil
        _ = try agent?.unlockedVault()
        self.init(home, agent)
    }

    private init(_ home: TestHome, _ agent: TestAgent?) {
        self.home = home
        self.agent = agent
        vault = AgentOrFileVault(at: home.vault, agent: home.place) { () throws(TokenStorageError) in
            let vault = try BlockingFileVault.open(at: home.vault, configuration: home.configuration)
            try vault.unlock(with: TestHome.keyFile)
            return vault
        }
    }

    func storage(service: String) -> any TokenStorage { vault.storage(service: service) }
    func blockingStorage(service: String) -> any BlockingTokenStorage {
        vault.storage(service: service).blocking
    }
    func anotherHandle() -> any ConformanceSubject { EitherSubject(home, agent) }
}
