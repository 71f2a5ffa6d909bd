import Glibc
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

/// A vault that the agent releases, or replaces by a new unlock, while clients use it. Clients learn the
/// vault's current state. A listing hides items only because they are locked.
@Suite(.tags(.programs), .from(.usual)) struct LetGoOfTests {
    private let home: TestHome
    private let agent: LocalAgent

    init() throws {
        home = try TestHome()
        agent = try LocalAgent(in: home)
        let storage = try agent.unlockedVault().storage(service: "s")
        try storage.store(token: "dark", for: "dark", policy: .whenUnlocked)
        for number in 0..<30 {
            try storage.store(token: "open", for: TokenKey("open-\(number)"), policy: .afterFirstUnlock)
        }
    }

    /// The vault is closed between its unlock and the moment when the agent holds it.
    @Test func aVaultThatWasLetGoOfMeanwhileIsNotHeld() throws {
        let vaults = HeldVaults(limits: AgentLimits())
        let path = VaultReference(at: home.vault)
        let vault = try home.open()
        vault.close()
        let error = #expect(throws: TokenStorageError.self) {
            try vaults.hold(
                HeldVaults.Held(vault: vault, idleTime: nil, stateDirectory: nil), at: path.path, 0,
                after: nil)
        }
        #expect(error?.code == .locked)
        #expect(vaults.vault(path) == nil)
    }

    /// However often vaults are locked, the call that reports a lock starts at the same stack depth.
    @Test func locksDoNotPileUp() {
        let vaults = HeldVaults(limits: AgentLimits())
        let places = Mutex<Set<UInt>>([])
        vaults.tellOfLocks { _ in
            var here = 0
            withUnsafeMutablePointer(to: &here) { here in
                _ = places.withLock { $0.insert(UInt(bitPattern: here)) }
            }
        }
        for _ in 0..<1_000 { vaults.lockAll() }
        #expect(places.withLock { $0.count } == 1)
    }

    /// What went wrong on the threads of a test.
    private final class Wrongs: Sendable {
        let all = Mutex<Set<String>>([])
        let rounds = Mutex(0)

        func expect(_ codes: Set<TokenStorageError.Code>, _ body: () throws -> String?) {
            rounds.withLock { $0 += 1 }
            let wrong: String?
            do {
                wrong = try body()
            } catch let error as TokenStorageError {
                wrong = codes.contains(error.code) ? nil : "\(error.operation): \(error.code), \(error)"
            } catch {
                wrong = "\(error)"
            }
            if let wrong { all.withLock { _ = $0.insert(wrong) } }
        }
    }

    /// Runs `others` again and again on threads of their own while `disturbance` runs, 60 times and until they were at it 200
    /// times.
    private func use(
        _ others: [@Sendable () -> Void], _ wrongs: Wrongs, while disturbance: () throws -> Void
    ) throws {
        let isOver = Mutex(false)
        let running = Monitor(others.count)
        let threads = others.map { _ in WorkerThread(name: "user") }
        for (thread, other) in zip(threads, others) {
            thread.run {
                while !isOver.withLock({ $0 }) { other() }
                running.announce { $0 -= 1 }
            }
        }
        defer {
            isOver.withLock { $0 = true }
            running.wait { $0 == 0 ? () : nil }
        }
        var rounds = 0
        while rounds < 60 || wrongs.rounds.withLock({ $0 }) < 200 {
            try disturbance()
            rounds += 1
        }
    }

    private func users(_ wrongs: Wrongs, orLocked: Bool) -> [@Sendable () -> Void] {
        let codes: Set<TokenStorageError.Code> = orLocked ? [.locked] : []
        let storages = (0..<3).map { _ in agent.vault().storage(service: "s") }
        return [
            {
                wrongs.expect(codes) {
                    let item = try storages[0].retrieve(for: "open-3")
                    return item == "open" ? nil : "read \(item ?? "nothing")"
                }
            },
            {
                wrongs.expect(codes) {
                    let listing = try storages[1].list(.all)
                    let hidden = listing.hiddenReasons.filter { $0.key != .locked }
                    let open = listing.items.count { $0.key.name.hasPrefix("open-") }
                    return open == 30 && hidden.isEmpty ? nil : "listed \(open), hidden \(hidden)"
                }
            },
            {
                wrongs.expect(codes) {
                    try storages[2].store(token: "more", for: "more", policy: .afterFirstUnlock)
                    return nil
                }
            },
        ]
    }

    @Test func whoUsesItHearsThatItIsNotHeld() throws {
        let wrongs = Wrongs()
        let vault = agent.vault()
        try use(users(wrongs, orLocked: true), wrongs) {
            try vault.release()
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        }
        #expect(wrongs.all.withLock { $0 } == [])
    }

    /// Clients see no lock, because none happens: each new unlock of the same vault replaces the one that the
    /// agent holds.
    @Test func whoUsesOneThatIsHeldAnewHearsNothingOfIt() throws {
        let wrongs = Wrongs()
        let vault = agent.vault()
        let states = [home.state, home.path.appending("another-state")]
        var round = 0
        try use(users(wrongs, orLocked: false), wrongs) {
            round += 1
            try vault.unlock(with: TestHome.keyFile, stateDirectory: states[round % 2])
        }
        #expect(wrongs.all.withLock { $0 } == [])
    }

    /// The same of a vault that a program has opened itself, and closes on another thread.
    @Test func whoUsesAVaultThatIsClosedHearsThat() throws {
        let wrongs = Wrongs()
        let current = Mutex(try home.open())
        let reader: @Sendable () -> Void = {
            let storage = current.withLock { $0 }.storage(service: "s")
            wrongs.expect([.closed]) {
                try storage.retrieve(for: "open-3") == "open" ? nil : "read something else"
            }
            wrongs.expect([.closed]) {
                let listing = try storage.list(.all)
                return listing.hidden == 0 ? nil : "hidden \(listing.hiddenReasons)"
            }
            wrongs.expect([.closed]) {
                try storage.store(token: "more", for: "more", policy: .whenUnlocked)
                return nil
            }
        }
        try use([reader, reader], wrongs) {
            let next = try home.open()
            let last = current.withLock { vault in
                defer { vault = next }
                return vault
            }
            last.close()
        }
        #expect(wrongs.all.withLock { $0 } == [])
    }

    // MARK: - Files that are not as they should be

    @Test func nothingIsStoredWhereOthersMayRead() throws {
        let storage = agent.vault().storage(service: "s")
        let direct = try home.open()
        defer { direct.close() }
        try #require(chmod(home.vault.string, 0o644) == 0)
        let before = home.path.appending("before")
        try #require(try Program.run("/bin/cp", [home.vault.string, before.string]) == 0)
        let stores: [() throws -> Void] = [
            { try storage.store(token: "new", for: "new") },
            { try direct.storage(service: "s").store(token: "new", for: "new") },
            { _ = try storage.deleteAll() },
        ]
        for store in stores {
            let error = #expect(throws: TokenStorageError.self) { try store() }
            #expect(error?.code == .insecurePermissions)
        }
        #expect(try Program.run("/usr/bin/cmp", [home.vault.string, before.string]) == 0)
        try #require(chmod(home.vault.string, 0o600) == 0)
        try storage.store(token: "new", for: "new")
        #expect(try direct.storage(service: "s").retrieve(for: "new") == "new")
    }

    @Test(arguments: [false, true])
    func theStatusOfAnOldCopyIsThatItIsOne(isMoved: Bool) throws {
        let vault = agent.vault()
        let old = home.path.appending("old")
        try #require(try Program.run("/bin/cp", [home.vault.string, old.string]) == 0)
        try vault.storage(service: "s").store(token: "new", for: "new")
        #expect(try vault.status()?.isAnchored == true)
        let moving = ["-p", old.string, home.vault.string]
        let writing = ["if=\(old)", "of=\(home.vault)", "conv=notrunc", "status=none"]
        try #require(chmod(old.string, 0o600) == 0)
        // With --remove-destination, cp replaces the file instead of its contents.
        try #require(
            try isMoved
                ? Program.run("/bin/cp", ["--remove-destination"] + moving) == 0
                : Program.run("/bin/dd", writing) == 0)
        let error = #expect(throws: TokenStorageError.self) { try vault.status() }
        #expect(error?.code == .rolledBack)
    }
}

/// An agent to which the system gives no more threads.
@Suite(.tags(.programs), .from(.usual)) struct NoThreadTests {
    @Test func itCanBeLockedAllTheSame() throws {
        let hasThreads = Mutex(true)
        let home = try TestHome()
        let agent = try LocalAgent(
            in: home, makeThread: { hasThreads.withLock { $0 } ? WorkerThread(name: "client") : .none })
        let vault = try agent.unlockedVault()
        vault.close()
        #expect(agent.server.waitForClients(0, atMost: .seconds(300)))
        hasThreads.withLock { $0 = false }
        // This client only takes up the last thread.
        let idle = try RawClient(home.place)
        try idle.ask(.lock, home)
        #expect(try idle.answer() == .kind(.result))
        for _ in 0..<3 {
            let other = agent.vault()
            #expect(try other.lock())
        }
        // The agent ended the idle connection to serve the locks.
        _ = try idle.readToEnd()
        // A client that does not lock gets a goodbye.
        let reader = try RawClient(home.place)
        try reader.ask(.state, home)
        #expect(try reader.answer() == .kind(.goodbye))
        hasThreads.withLock { $0 = true }
        #expect(try agent.vault().lockState() == .locked)
    }
}
