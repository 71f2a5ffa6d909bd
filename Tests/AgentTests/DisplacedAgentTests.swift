import Glibc
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

/// An agent that clients cannot find: it holds keys, and no client can ask it to lock.
@Suite(.tags(.programs), .from(.usual), .timeLimit(.minutes(20))) struct DisplacedAgentTests {
    let home: TestHome

    init() throws { home = try TestHome() }

    enum Change: CaseIterable {
        case socketRemoved, socketRenamed, socketReplaced, directoryRenamed, directoryRemoved, homeRenamed
    }

    private func make(_ change: Change) throws {
        let (directory, socket) = (home.place.directory.string, home.place.socket.string)
        switch change {
        case .socketRemoved: try #require(unlink(socket) == 0)
        case .socketRenamed: try #require(rename(socket, socket + ".away") == 0)
        case .socketReplaced:
            let other = home.path.appending("file")
            try SmallFile.create(other, [1])
            try #require(rename(other.string, socket) == 0)
        case .directoryRenamed: try #require(rename(directory, directory + ".away") == 0)
        // A watch of the directory reports nothing about this change.
        case .homeRenamed: try #require(rename(home.path.string, home.path.string + ".away") == 0)
        case .directoryRemoved: try #require(try Program.run("/bin/rm", ["-rf", directory]) == 0)
        }
    }

    @Test(arguments: Change.allCases)
    func itEndsAndAllIsLocked(_ change: Change) throws {
        let agent = try TestAgent(in: home)
        _ = try agent.unlockedVault()
        try make(change)
        #expect(agent.process.wait() == 0)
        if change == .homeRenamed {
            try #require(rename(home.path.string + ".away", home.path.string) == 0)
        }
        if change == .socketReplaced { try #require(unlink(home.place.socket.string) == 0) }
        #expect(try agent.vault().isHeld() == false)
        // The next agent finds its place free.
        let next = try TestAgent(in: home)
        #expect(try next.unlockedVault().lockState() == .unlocked)
    }

    /// The agent locks every vault before it waits for running requests.
    @Test func allIsLockedBeforeAnybodyIsWaitedFor() throws {
        let states = Mutex<[LockState]>([])
        let agent = try LocalAgent(
            in: home,
            stopping: { server in
                states.withLock { $0 = server.vaults.statuses.map(\.state) }
            })
        let vault = try agent.unlockedVault()
        try vault.storage(service: "s").store(token: "fake", for: "open", policy: .afterFirstUnlock)
        #expect(try vault.lockState() == .unlocked)
        try #require(unlink(home.place.socket.string) == 0)
        agent.wait()
        #expect(states.withLock { $0 } == [.afterFirstUnlock])
    }

    @Test func otherNamesInItsDirectoryAreNothingToIt() throws {
        let agent = try TestAgent(in: home)
        let vault = try agent.unlockedVault()
        let other = home.place.directory.appending("other")
        try SmallFile.create(other, [1])
        try #require(rename(other.string, other.string + ".away") == 0 && unlink(other.string + ".away") == 0)
        #expect(try vault.lockState() == .unlocked)
    }

    @Test func thereIsOneAgentWhateverIsRemoved() throws {
        let listening = try AgentListening(at: home.place)
        for name in try PosixDirectory(home.place.directory).names() {
            try #require(unlink(home.place.directory.appending(name).string) == 0)
        }
        let error = #expect(throws: TokenStorageError.self) { _ = try AgentListening(at: home.place) }
        #expect(error?.code == .conflict)
        withExtendedLifetime(listening) {}
    }

    /// What an agent looks like that is stopped, or whose socket went without its notice.
    @Test func oneThatCannotBeReachedIsNoneThatIsAbsent() throws {
        let directory = try SocketDirectory(home.place.directory, creating: true)
        try directory.take()
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .milliseconds(50))
        for call in [
            { _ = try vault.isHeld() }, { _ = try vault.lock() }, { _ = try vault.status() },
            { _ = try vault.storage(service: "s").retrieve(for: "k") },
            { try AgentControl.lockAll(at: home.place, within: .milliseconds(50)) },
            { try AgentControl.stop(at: home.place, within: .milliseconds(50)) },
            { _ = try AgentControl.isRunning(at: home.place, within: .milliseconds(50)) },
        ] as [() throws -> Void] {
            let error = #expect(throws: TokenStorageError.self) { try call() }
            #expect(
                error?.code == .unavailable && error?.advice?.contains("pkill") ?? false, "\(error as Any)")
        }
    }

    @Test func theFileIsNotOpenedBesideOneThatCannotBeReached() async throws {
        let directory = try SocketDirectory(home.place.directory, creating: true)
        try directory.take()
        let isOpened = Mutex(false)
        let vault = AgentOrFileVault(at: home.vault, agent: home.place, timeout: .milliseconds(50)) {
            [home] () throws(TokenStorageError) in
            isOpened.withLock { $0 = true }
            return try BlockingFileVault.open(at: home.vault, configuration: home.configuration)
        }
        await #expect(throws: TokenStorageError.self) {
            try await vault.storage(service: "s").retrieve(for: "k")
        }
        #expect(isOpened.withLock { $0 } == false)
        withExtendedLifetime(directory) {}
    }

    @Test func stoppingWaitsUntilItHasLetGo() throws {
        let agent = try TestAgent(in: home)
        _ = try agent.unlockedVault()
        try AgentControl.stop(at: home.place, within: .seconds(300))
        #expect(!home.place.isTaken)
        #expect(agent.process.wait() == 0)
    }

    /// The one that was stopped is waited for, and none that came after it.
    @Test func stoppingDoesNotWaitForTheNext() throws {
        let next = Mutex<AgentProcess?>(nil)
        let isOver = Monitor(false)
        let waker = try WakeEvent()
        let place = home.place
        let directory = Mutex<SocketDirectory?>(try SocketDirectory(place.directory, creating: true))
        let listener = try directory.withLock { directory in
            try directory?.take()
            return try directory?.listen(at: AgentEndpoint.socketName)
        }
        WorkerThread(name: "first").run {
            defer { isOver.announce { $0 = true } }
            guard let socket = try? listener?.accept(orSignal: nil, orWake: waker) else { return }
            // No client sends this agent a request any more. The next agent starts before this one reports
            // its end.
            directory.withLock { $0 = nil }
            next.withLock { $0 = try? AgentProcess(at: place) }
            let buffer = WipedBuffer(capacity: 64)
            var writer = WireWriter(buffer)
            writer.appendHello()
            writer.begin(.result, id: 1)
            _ = writer.end()
            try? buffer.send(to: socket, until: Deadline(after: .seconds(300)))
        }
        try AgentControl.stop(at: place, within: .seconds(300))
        isOver.wait { $0 ? () : nil }
        let agent = next.withLock { $0.take() }
        #expect(try AgentControl.isRunning(at: place))
        agent?.end(SIGTERM)
    }

    @Test func aForeignLockOfTheDirectoryIsNoAgent() throws {
        _ = try SocketDirectory(home.place.directory, creating: true)
        let descriptor = open(home.place.directory.string, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        try #require(descriptor >= 0 && flock(descriptor, LOCK_EX) == 0)
        let error = #expect(throws: TokenStorageError.self) { _ = try AgentListening(at: home.place) }
        #expect(
            error?.code == .unavailable && error?.underlying?.contains("locked") ?? false, "\(error as Any)")
        #expect(error?.advice?.contains("fuser") ?? false)
    }
}
