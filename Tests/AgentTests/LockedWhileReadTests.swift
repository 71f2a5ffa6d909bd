import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

/// What was asked for before a lock and has not gone out is not told after it.
@Suite(.tags(.programs), .from(.usual), .timeLimit(.minutes(20))) struct LockedWhileReadTests {
    private let home: TestHome
    private let agent: LocalAgent
    private let vault: BlockingAgentVault
    private static let size = 1 << 20

    init() throws {
        home = try TestHome()
        agent = try LocalAgent(in: home)
        vault = try agent.unlockedVault()
        let storage = vault.storage(service: "s")
        let big = Secret(repeatElement(UInt8(ascii: "x"), count: Self.size))
        try storage.store(big, for: "dark", details: TokenDetails(policy: .whenUnlocked))
        try storage.store(token: "b", for: "open", policy: .afterFirstUnlock)
        let label = String(repeating: "x", count: 200)
        for start in stride(from: 0, to: 8_000, by: 1_000) {
            try vault.storage(service: "many").commit(
                (start..<start + 1_000).map {
                    .store(Secret([1]), for: TokenKey("\($0)"), details: TokenDetails(label: label))
                })
        }
    }

    /// `anew`: after another vault, with the same keys, has taken the place of the one that is read.
    enum Lock: CaseIterable { case one, all, release, anew }

    private func lock(_ lock: Lock) throws {
        switch lock {
        case .one: #expect(try vault.lock())
        case .all: try AgentControl.lockAll(at: home.place)
        case .release: #expect(try vault.release())
        case .anew:
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.path.appending("another-state"))
            #expect(try vault.lock())
        }
    }

    @Test(arguments: Lock.allCases)
    func aSecretIsNotDeliveredAfterALock(_ lock: Lock) throws {
        let client = try RawClient(home.place)
        try client.ask(.secret(service: "s", key: "dark"), home)
        // The answer is on its way: its first bytes have arrived.
        try client.socket.wait(until: Deadline(after: .seconds(300)))
        try self.lock(lock)
        let count = try client.readToEnd()
        #expect(count > 0 && count < Self.size, "\(count)")
    }

    /// The kernel keeps some answers, and the one behind them has begun to go out just now.
    @Test(arguments: Lock.allCases)
    func aShortSecretIsNotDeliveredAfterALock(_ lock: Lock) throws {
        let secret = Secret(repeatElement(UInt8(ascii: "x"), count: 30_000))
        try vault.storage(service: "s").store(
            secret, for: "short", details: TokenDetails(policy: .whenUnlocked))
        let client = try RawClient(home.place)
        try client.ask(.secret(service: "s", key: "short"), home, count: 20)
        // More bytes follow, because the kernel keeps some.
        try #require(client.wait(forBytes: 100_000))
        try self.lock(lock)
        let kept = client.waiting
        client.socket.endSending()
        _ = try client.bytes(kept)
        // The rest says at most that the vault is locked.
        let rest = try client.bytes(.max)
        #expect(!rest.contains("xxxx"), "\(rest.utf8.count) bytes after \(kept)")
    }

    @Test func aSecretIsNotDeliveredAfterItLockedByItself() throws {
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state, lockingAfter: .seconds(1))
        let client = try RawClient(home.place)
        try client.ask(.secret(service: "s", key: "dark"), home)
        try client.socket.wait(until: Deadline(after: .seconds(300)))
        // Reads nothing until the agent has ended the connection.
        #expect(agent.server.waitForClients(1, atMost: .seconds(300)))
        #expect(try vault.lockState() != .unlocked)
        let count = try client.readToEnd()
        #expect(count > 0 && count < Self.size, "\(count)")
    }

    @Test(arguments: Lock.allCases)
    func aListingIsNotDeliveredAfterALock(_ lock: Lock) throws {
        let client = try RawClient(home.place)
        try client.ask(.list(service: "many", query: .all), home)
        try client.socket.wait(until: Deadline(after: .seconds(300)))
        try self.lock(lock)
        let count = try client.readToEnd()
        #expect(count > 0 && count < 1_600_000, "\(count)")
    }

    /// What may be read while it is locked is, however often that is locked.
    @Test func whatMayBeReadIsRead() throws {
        let isOver = Monitor(false)
        WorkerThread(name: "locker").run { [vault] in
            for _ in 0..<2_000 { _ = try? vault.lock() }
            isOver.announce { $0 = true }
        }
        let storage = vault.storage(service: "s")
        while !isOver.withLock({ $0 }) {
            #expect(try storage.retrieve(for: "open") == "b")
            do throws(TokenStorageError) {
                _ = try storage.secret(for: "dark")
            } catch {
                #expect(error.code == .locked, "\(error)")
            }
        }
    }

    /// Another vault's answers go on.
    @Test func anotherVaultIsDeliveredWhole() throws {
        let path = home.path.appending("vaults").appending("other.vault")
        try BlockingFileVault.create(
            at: path, unlockMethod: TestHome.keyFile, configuration: home.configuration
        ).close()
        let other = BlockingAgentVault(at: path, agent: home.place, timeout: .seconds(300))
        try other.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        let client = try RawClient(home.place)
        try client.ask(.secret(service: "s", key: "dark"), home)
        try client.socket.wait(until: Deadline(after: .seconds(300)))
        #expect(try other.lock())
        client.socket.endSending()
        #expect(try client.readToEnd() > Self.size)
    }
}
