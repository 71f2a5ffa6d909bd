import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

/// The memory that clients can make the agent derive keys in.
@Suite(.tags(.programs), .from(.usual), .timeLimit(.minutes(20))) struct DerivationTests {
    private static let words = UnlockMethod.passphrase(Secret(utf8: "fake correct horse"))
    private let home: TestHome

    init() throws {
        home = try TestHome()
        let vault = try home.open()
        _ = try vault.addSlot(Self.words)
        vault.close()
    }

    @Test func aSlotThatAsksForMoreThanThereIsIsRefused() throws {
        let agent = try LocalAgent(in: home) { $0.availableMemory = { 40 << 20 } }
        let vault = agent.vault()
        let error = #expect(throws: TokenStorageError.self) {
            try vault.unlock(with: Self.words, stateDirectory: home.state)
        }
        #expect(error?.code == .resourcesExhausted && error?.operation == "unlock", "\(error as Any)")
        #expect(error?.advice?.contains("--no-agent") == true)
        #expect(try !vault.isHeld())
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try vault.lockState() == .unlocked)
    }

    /// The turn passes on while a key is still derived: what does not fit beside it waits until it is there.
    @Test func unlocksWhoseTurnsPassOnShareTheMemory() throws {
        let agent = try LocalAgent(in: home) { limits in
            (limits.longestTurn, limits.derivationLength) = (.zero, 100 << 20)
        }
        let results = Monitor<[Result<Void, TokenStorageError>]>([])
        for _ in 0..<4 {
            let vault = agent.vault()
            WorkerThread(name: "unlocker").run { [home] in
                let result = Result { () throws(TokenStorageError) in
                    try vault.unlock(with: Self.words, stateDirectory: home.state)
                }
                results.announce { $0.append(result) }
            }
        }
        for result in results.wait({ $0.count == 4 ? $0 : nil }) { try result.get() }
        let derivations = agent.server.vaults.derivations
        #expect(derivations.mostTaken == 64 << 20 && derivations.taken == 0)
    }

    @Test func whatOthersKeepForTooLongIsRefused() throws {
        let agent = try LocalAgent(in: home) { limits in
            (limits.derivationLength, limits.derivationTime) = (100 << 20, .milliseconds(1))
        }
        let derivations = agent.server.vaults.derivations
        let share = try derivations.take(64 << 20, until: nil)
        let error = #expect(throws: TokenStorageError.self) {
            try agent.vault().unlock(with: Self.words, stateDirectory: home.state)
        }
        #expect(error?.code == .resourcesExhausted && error?.underlying?.contains("other unlocks") == true)
        withExtendedLifetime(share) {}
    }

    /// The memory stays taken until the key is derived.
    @Test func aClientThatGoesAwayLeavesItsMemoryTaken() throws {
        let agent = try LocalAgent(in: home)
        let derivations = agent.server.vaults.derivations
        let client = try RawClient(home.place)
        try client.ask(
            .unlock(UnlockOrder(method: Self.words, stateDirectory: home.state, idleTime: nil)), home)
        while derivations.mostTaken == 0 { WorkerThread.giveWay() }
        client.socket.end()
        // The memory is given back after the derivation, so the agent then holds the vault.
        while derivations.taken > 0 { WorkerThread.giveWay() }
        #expect(agent.server.waitForClients(0, atMost: .seconds(300)))
        #expect(try agent.vault().lockState() == .unlocked)
    }

    /// Two of the largest slots that `vaultctl` makes fit at once, and one of the largest that a file may have.
    @Test func documentedCostsFit() throws {
        let budget = DerivationBudget(AgentLimits().derivationLength, patience: .zero, available: { 8 << 30 })
        let first = try budget.take(1 << 30, until: nil)
        let second = try budget.take(1 << 30, until: nil)
        withExtendedLifetime((first, second)) {}
        let whole = DerivationBudget(AgentLimits().derivationLength, patience: .zero, available: { 8 << 30 })
        _ = try whole.take(2 << 30, until: nil)
        #expect(throws: DerivationBudget.Refusal.self) {
            _ = try DerivationBudget(AgentLimits().derivationLength, patience: .zero, available: { 8 << 30 })
                .take(2 << 30 + 1, until: nil)
        }
        // The agent's limit comes from the system.
        let asked = try #require(AgentLimits().availableMemory())
        let available = try #require(MemoryAllowance.available())
        #expect(asked / 2 < available && available / 2 < asked)
    }
}
