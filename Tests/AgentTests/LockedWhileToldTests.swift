import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// Names of items that a lock makes dark are not told after it.
// The tests run one after another: each blocks a thread on which the agent reports changes.
@Suite(.tags(.programs), .from(.usual), .serialized, .timeLimit(.minutes(20))) struct LockedWhileToldTests {
    private let home: TestHome
    private let agent: LocalAgent
    private let vault: BlockingAgentVault

    init() throws {
        home = try TestHome()
        agent = try LocalAgent(in: home)
        vault = try agent.unlockedVault()
    }

    /// Locks the vault. With `isAnew`, an unlock with the same keys first replaces the vault whose changes
    /// are reported.
    private func lock(_ isAnew: Bool) throws {
        if isAnew {
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.path.appending("another-state"))
        }
        #expect(try vault.lock())
    }

    /// Names of items that are dark by now, which a client was too slow to be told.
    @Test(arguments: [false, true])
    func changesAreNotToldAfterALock(isAnew: Bool) throws {
        let client = try RawClient(home.place)
        try client.ask(.subscribe(service: "names"), home)
        try client.socket.wait(until: Deadline(after: .seconds(300)))
        let storage = vault.storage(service: "names")
        let name = String(repeating: "n", count: 1_000)
        let policy = TokenDetails(policy: .whenUnlocked)
        for start in stride(from: 0, to: 1_000, by: 100) {
            try storage.commit(
                (start..<start + 100).map {
                    .store(Secret([1]), for: TokenKey("\(name)\($0)"), details: policy)
                })
        }
        try lock(isAnew)
        // Bytes that the kernel has taken still arrive, and nothing after them.
        let count = try client.changes()
        #expect(count < 500, "\(count)")
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.list().items.count == 1_000)
    }

    /// Other code of the process may block every thread that its tasks share.
    @Test func changesAreToldWhileTheThreadsOfTasksAreBlocked() throws {
        let client = try RawClient(home.place)
        try client.ask(.subscribe(service: "names"), home)
        #expect(agent.wait(forSubscribers: 1, atMost: .seconds(300)))
        let blocked = Monitor(0)
        let isOver = Monitor(false)
        defer { isOver.announce { $0 = true } }
        for _ in 0..<64 {
            Task.detached {
                blocked.announce { $0 += 1 }
                isOver.wait { $0 ? () : nil }
            }
        }
        // This test occupies one of the threads. There may be fewer threads than processors.
        let count = Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) - 1
        _ = blocked.wait(atMost: .seconds(10)) { $0 >= count ? () : nil }
        try vault.storage(service: "names").store(token: "x", for: "told name")
        #expect(try client.bytes(.max, orUntil: "told name").contains("told name"))
    }

    /// The answer to a subscription waits for its client, and behind it the names of what was stored before the lock.
    @Test(arguments: [false, true])
    func changesBehindAnAnswerThatWaitsAreNotToldAfterALock(isAnew: Bool) throws {
        // Counts the answers that the kernel keeps.
        let probe = try RawClient(home.place)
        try probe.ask(.state, home, count: 2_000)
        var (kept, since) = (0, ContinuousClock.now)
        while since.duration(to: .now) < .milliseconds(300) {
            let now = probe.waiting
            if now != kept { (kept, since) = (now, .now) }
        }
        probe.socket.endSending()
        let size = try probe.readToEnd() / 2_000
        let fit = kept / size
        let storage = vault.storage(service: "names")
        // This item keeps the vault open while it is locked.
        try storage.store(token: "x", for: "first bright", policy: .afterFirstUnlock)
        for count in [fit - 1, fit] {
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
            let client = try RawClient(home.place)
            try client.ask(
                [AgentOperation](repeating: .state, count: count) + [.subscribe(service: "names")], home)
            // While an answer waits in front of the answer to the subscription, the client reads it.
            while !agent.wait(forSubscribers: 1, atMost: .milliseconds(300)) {
                _ = try client.bytes(size)
            }
            for number in 0..<3 {
                try storage.store(token: "x", for: TokenKey("dark name \(number)"), policy: .whenUnlocked)
            }
            try lock(isAnew)
            let rest = client.waiting
            try storage.store(token: "x", for: "bright name", policy: .afterFirstUnlock)
            _ = try client.bytes(rest)
            let told = try client.bytes(.max, orUntil: "bright name")
            #expect(!told.contains("dark name"), "\(count) of \(fit)")
            client.socket.end()
            #expect(agent.wait(forSubscribers: 0, atMost: .seconds(300)))
        }
    }
}
