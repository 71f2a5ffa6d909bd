import Glibc
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import VaultAgent

@testable import TokenVaultPlatform
@testable import VaultAgentServer

/// An agent that holds nothing and that no client is at: it ends, and no client is lost to that.
@Suite(.tags(.programs), .from(.usual), .timeLimit(.minutes(20))) struct UnusedAgentTests {
    private let home: TestHome

    init() throws { home = try TestHome() }

    private static func limits(_ unusedTime: Duration) -> AgentLimits {
        var limits = AgentLimits()
        (limits.unusedTime, limits.lookTime) = (unusedTime, .zero)
        return limits
    }

    /// An agent of that name, whose end is announced with its reason.
    private func run(_ listening: AgentListening, _ unusedTime: Duration) throws -> Monitor<AgentServer.End?>
    {
        let end = Monitor<AgentServer.End?>(nil)
        let server = try AgentServer(limits: Self.limits(unusedTime))
        let held = Mutex<AgentListening?>(listening)
        WorkerThread(name: "agent").run {
            guard let listening = held.withLock({ $0.take() }) else { return }
            let reason = try? server.run(listening)
            withExtendedLifetime(listening) {}
            end.announce { $0 = reason }
        }
        return end
    }

    /// Without a limit an agent that is no longer used stays for ever.
    @Test func anAgentEndsAfterTenMinutesWithoutUse() {
        #expect(AgentLimits().unusedTime == .seconds(600))
    }

    @Test func itEndsAndLeavesItsPlace() throws {
        let end = try run(try AgentListening(at: home.place), .milliseconds(1))
        #expect(end.wait { $0 } == .unused)
        while home.place.isTaken { WorkerThread.giveWay() }
        #expect(try PosixDirectory(home.place.directory).names().isEmpty)
        #expect(try AgentControl.isRunning(at: home.place) == false)
        let next = try TestAgent(in: home)
        #expect(try next.unlockedVault().lockState() == .unlocked)
    }

    /// A client keeps it, and so does a vault that is open; one that was closed when it locked does not.
    @Test func whatItIsThereForKeepsIt() throws {
        let listening = try AgentListening(at: home.place)
        let client = try RawClient(home.place)
        let end = try run(listening, .zero)
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(300))
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        try vault.storage(service: "s").store(token: "fake", for: "open", policy: .afterFirstUnlock)
        client.socket.end()
        vault.close()
        for _ in 0..<100 {
            let other = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(300))
            try other.lock()
            #expect(try other.storage(service: "s").retrieve(for: "open") == "fake")
        }
        #expect(end.withLock { $0 } == nil)
        let other = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(300))
        try other.storage(service: "s").delete(for: "open")
        try other.lock()
        other.close()
        #expect(end.wait { $0 } == .unused)
    }

    @Test func whoCameJustBeforeIsServed() throws {
        let listening = try AgentListening(at: home.place)
        let client = try RawClient(home.place)
        #expect(listening.withdraw() != nil)
        #expect(try SmallFile.exists(home.place.socket) && listening.isInPlace)
        #expect(listening.withdraw() == nil)
        #expect(try SmallFile.exists(home.place.socket) == false)
        #expect(listening.remove())
        #expect(try PosixDirectory(home.place.directory).names().isEmpty)
        withExtendedLifetime(client) {}
    }

    /// The test plays a service manager that starts an agent whenever a client waits at the socket, a hundred times. Clients
    /// come while one ends, each time.
    @Test func noClientOfAServiceIsLost() throws {
        let listener = try ManagedSocket.listen(at: home.place.socket)
        let place = home.place
        let rounds = 100
        let wrongs = Mutex<Set<String>>([])
        let running = Monitor(4)
        let ends = Monitor(0)
        for number in 0..<4 {
            WorkerThread(name: "client").run {
                for round in 0..<rounds {
                    do throws(TokenStorageError) {
                        for _ in 0...number {
                            guard try !AgentControl.isRunning(at: place, within: .seconds(300)) else {
                                continue
                            }
                            wrongs.withLock { _ = $0.insert("no agent") }
                        }
                    } catch {
                        wrongs.withLock { _ = $0.insert("\(error)") }
                    }
                    ends.wait { $0 > round ? () : nil }
                }
                running.announce { $0 -= 1 }
            }
        }
        while running.withLock({ $0 }) > 0 {
            var waiting = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 1) > 0 else { continue }
            let passed = SocketListener(descriptor: fcntl(listener.descriptor, F_DUPFD_CLOEXEC, 3))
            let server = try AgentServer(limits: Self.limits(.zero))
            let end = try server.run(
                try AgentListening(at: place, inherited: passed), stopping: { ends.announce { $0 += 1 } })
            #expect(end == .unused)
        }
        #expect(wrongs.withLock { $0 } == [])
        #expect(ends.withLock { $0 } >= rounds)
    }

    /// Real commands that meet an agent which ends: each is served, by that one or by the next, which one of them starts.
    @Test(arguments: 0..<10)
    func commandsThatMeetAnEndingAgentAreServed(_ round: Int) throws {
        let home = try CommandHome()
        try PosixDirectory.makeAll(home.place.directory)
        let end = try run(try AgentListening(at: home.place), .milliseconds(round * 4))
        let outcomes = Monitor<[Program.Outcome]>([])
        for _ in 0..<3 {
            WorkerThread(name: "command").run {
                let outcome = try? home.run("unlock", "--key-file", home.keyFile, "--timeout", "300")
                outcomes.announce {
                    $0.append(outcome ?? Program.Outcome(status: -1, output: "", error: "not started"))
                }
            }
        }
        let all = outcomes.wait { $0.count == 3 ? $0 : nil }
        #expect(all.map(\.status) == [0, 0, 0], "\(all.map(\.error))")
        #expect(try home.run("store", "k", input: "fake").status == 0)
        #expect(try home.run("retrieve", "k").output == "fake")
        #expect(try home.run("agent", "--stop").status == 0)
        _ = end.wait { $0 }
    }
}
