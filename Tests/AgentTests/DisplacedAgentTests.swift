import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent
import VaultAgentServer

/// An agent that clients cannot find: it holds keys, and nobody can tell it to lock.
@Suite(.timeLimit(.minutes(20))) struct DisplacedAgentTests {
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
        // Nobody tells who watches the directory.
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
        // Whoever is next finds its place free.
        let next = try TestAgent(in: home)
        #expect(try next.unlockedVault().lockState() == .unlocked)
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
}
