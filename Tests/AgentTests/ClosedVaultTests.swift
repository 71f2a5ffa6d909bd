import Glibc
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

/// A vault that is locked and has nothing to read: the agent has no file of it open, and answers that it is locked.
@Suite(.tags(.programs), .from(.usual), .timeLimit(.minutes(20))) struct ClosedVaultTests {
    private let home: TestHome
    private let agent: LocalAgent
    private let vault: BlockingAgentVault
    private var storage: AgentTokenStorage.Blocking { vault.storage(service: "s") }

    init() throws {
        home = try TestHome()
        agent = try LocalAgent(in: home) { limits in
            limits.lookTime = .milliseconds(5)
            limits.nextLookTime = .milliseconds(20)
            limits.closingTime = .seconds(300)
        }
        vault = try agent.unlockedVault()
    }

    /// What this process, which the agent runs in, has open of the vault and its state.
    private var openFiles: [String] {
        let descriptors = (try? PosixDirectory("/proc/self/fd").names()) ?? []
        // Keeps the work small: other tests have many files open, and this property is read often.
        let places = [home.vault.removingLastComponent(), home.state].map(\.string)
        var buffer = [UInt8](repeating: 0, count: 4_096)
        return descriptors.compactMap { name in
            let count = buffer.withUnsafeMutableBytes { bytes in
                bytes.withMemoryRebound(to: CChar.self) { letters in
                    letters.baseAddress.map { readlink("/proc/self/fd/" + name, $0, letters.count) } ?? 0
                }
            }
            let path = String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
            return places.contains { path.hasPrefix($0) } ? path : nil
        }
    }

    /// Does something as another process does, and leaves nothing open.
    private func besideTheAgent(_ body: (FileTokenStorage.Blocking) throws -> Void) throws {
        let other = try home.open()
        defer { other.close() }
        try body(other.storage(service: "s"))
    }

    private func storeBesideTheAgent(_ key: TokenKey, _ policy: AccessPolicy) throws {
        try besideTheAgent { _ = try $0.store(token: "fake", for: key, policy: policy) }
    }

    private func waitUntilClosed() -> Bool {
        let deadline = Deadline(after: .seconds(300))
        var backOff = BackOff()
        while !openFiles.isEmpty, backOff.wait(until: deadline) {}
        return openFiles.isEmpty
    }

    private func expectLocked(_ body: () throws -> Void) {
        let error = #expect(throws: TokenStorageError.self) { try body() }
        #expect(error?.code == .locked, "\(error as Any)")
    }

    enum Lock: CaseIterable { case one, all }

    private func lock(_ lock: Lock) throws {
        switch lock {
        case .one: #expect(try vault.lock())
        case .all: #expect(try AgentControl.lockAll(at: home.place))
        }
    }

    @Test(arguments: Lock.allCases)
    func nothingOfItIsOpenWhenTheLockReturns(_ lock: Lock) throws {
        try storage.store(token: "fake", for: "dark", policy: .whenUnlocked)
        try storage.store(token: "fake", for: "device")
        #expect(!openFiles.isEmpty)
        try self.lock(lock)
        #expect(openFiles == [])
        // The agent still holds the vault, so its answer is final.
        #expect(try vault.isHeld() && vault.lockState() == .locked)
        #expect(try vault.status()?.state == .locked)
        #expect(try AgentControl.vaults(at: home.place).map(\.path) == [home.vault])
        expectLocked { _ = try storage.retrieve(for: "dark") }
        expectLocked { _ = try storage.retrieve(for: "never there") }
        expectLocked { _ = try storage.metadata(for: "dark") }
        expectLocked { _ = try storage.list() }
        expectLocked { _ = try storage.store(token: "fake", for: "x", policy: .afterFirstUnlock) }
        expectLocked { _ = try storage.deleteAll() }
        #expect(try vault.lock())
        #expect(openFiles == [])
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.retrieve(for: "dark") == "fake" && storage.retrieve(for: "device") == "fake")
        #expect(try storage.retrieve(for: "never there") == nil)
    }

    @Test(arguments: [AccessPolicy.afterFirstUnlock, .afterFirstUnlockThisDeviceOnly])
    func whatMayBeReadWhileLockedKeepsItOpen(_ policy: AccessPolicy) throws {
        try storage.store(token: "fake", for: "dark", policy: .whenUnlocked)
        // An item that another process stored counts as well.
        try storeBesideTheAgent("open", policy)
        try vault.lock()
        #expect(!openFiles.isEmpty)
        #expect(try vault.lockState() == .afterFirstUnlock)
        #expect(try storage.retrieve(for: "open") == "fake" && storage.retrieve(for: "none") == nil)
        try storage.store(token: "another", for: "open")
        try storage.delete(for: "open")
        // The last readable item is gone, so the agent closes the vault.
        #expect(waitUntilClosed())
        expectLocked { _ = try storage.retrieve(for: "open") }
    }

    /// The keys that another program replaced lock what could be read: the answer says so, and the connection goes on.
    @Test func replacedKeysAreTold() throws {
        try storage.store(token: "fake", for: "open", policy: .afterFirstUnlock)
        try vault.lock()
        let other = try home.open()
        defer { other.close() }
        _ = try other.rotateKeys(keeping: [TestHome.keyFile])
        for key in ["open", "never there"] as [TokenKey] {
            let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: key) }
            #expect(error?.code == .locked, "\(error as Any)")
        }
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.retrieve(for: "open") == "fake")
    }

    /// A client that reads all the time does not keep it open.
    @Test func whoReadsMeanwhileIsWaitedFor() throws {
        let isOver = Mutex(false)
        let running = Monitor(2)
        for _ in 0..<2 {
            WorkerThread(name: "reader").run { [agent] in
                let storage = agent.vault().storage(service: "s")
                while !isOver.withLock({ $0 }) { _ = try? storage.retrieve(for: "dark") }
                running.announce { $0 -= 1 }
            }
        }
        for _ in 0..<100 {
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
            try storage.store(token: "fake", for: "dark", policy: .whenUnlocked)
            try vault.lock()
            // The reader's request opens the file for a moment, to check that it is still the same vault.
            #expect(!agent.server.vaults.isAnyOpen)
        }
        isOver.withLock { $0 = true }
        running.wait { $0 == 0 ? () : nil }
    }

    /// What nothing leads to any more can be read no more: its file system can be unmounted.
    @Test(arguments: [false, true])
    func oneThatWasRemovedIsClosed(withItsDirectory: Bool) throws {
        try storage.store(token: "fake", for: "open", policy: .afterFirstUnlock)
        if withItsDirectory {
            let directory = home.vault.removingLastComponent()
            for name in try PosixDirectory(directory).names() {
                try #require(unlink(directory.appending(name).string) == 0)
            }
            try #require(rmdir(directory.string) == 0)
        } else {
            try #require(unlink(home.vault.string) == 0)
        }
        try vault.lock()
        #expect(waitUntilClosed())
    }

    /// What another process deletes is noticed, though no client comes.
    @Test func oneWhoseLastReadableItemAnotherProcessDeletesIsClosed() throws {
        try storage.store(token: "fake", for: "open", policy: .afterFirstUnlock)
        try vault.lock()
        #expect(try vault.lockState() == .afterFirstUnlock)
        try besideTheAgent { try $0.delete(for: "open") }
        #expect(waitUntilClosed())
    }

    /// Those that are closed take no room from those that are open.
    @Test func oneMoreCanBeUnlockedHoweverManyAreClosed() throws {
        let home = try TestHome()
        let agent = try LocalAgent(in: home) { $0.vaults = 2 }
        let paths = (0..<4).map { home.path.appending("vault \($0)") }
        for path in paths {
            try BlockingFileVault.create(
                at: path, unlockMethod: TestHome.keyFile, configuration: home.configuration
            ).close()
            let vault = BlockingAgentVault(at: path, agent: home.place, timeout: .seconds(300))
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
            try vault.lock()
            #expect(try vault.lockState() == .locked)
        }
        #expect(try AgentControl.vaults(at: home.place).map(\.path) == Array(paths.suffix(2)))
        withExtendedLifetime(agent) {}
    }

    @Test func oneThatLocksByItselfIsClosed() throws {
        try storage.store(token: "fake", for: "dark", policy: .whenUnlocked)
        try vault.unlock(
            with: TestHome.keyFile, stateDirectory: home.state, lockingAfter: .milliseconds(50))
        #expect(waitUntilClosed())
        #expect(try vault.status()?.idleTime != nil && vault.lockState() == .locked)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.retrieve(for: "dark") == "fake")
    }

    @Test func whoIsToldChangesKeepsItOpen() throws {
        let client = try RawClient(home.place)
        try client.ask(.subscribe(service: "s"), home)
        #expect(agent.wait(forSubscribers: 1, atMost: .seconds(300)))
        try vault.lock()
        #expect(!openFiles.isEmpty)
        #expect(try vault.lockState() == .afterFirstUnlock)
        client.socket.end()
        #expect(waitUntilClosed())
        #expect(try vault.lockState() == .locked)
    }

    /// An empty vault hides nothing, and says so until another process writes to it.
    @Test func whatIsEmptyIsKnownToBe() throws {
        try vault.lock()
        #expect(openFiles == [])
        #expect(try storage.retrieve(for: "k") == nil && storage.metadata(for: "k") == nil)
        #expect(try storage.list().items.isEmpty && vault.listAllServices().hidden == 0)
        try storeBesideTheAgent("k", .whenUnlocked)
        expectLocked { _ = try storage.retrieve(for: "k") }
        expectLocked { _ = try storage.list() }
    }

    @Test func anotherOneInItsPlaceIsNotHeld() throws {
        try storage.store(token: "fake", for: "k")
        try vault.lock()
        let other = home.path.appending("other.vault")
        try BlockingFileVault.create(
            at: other, unlockMethod: TestHome.keyFile, configuration: home.configuration
        ).close()
        try #require(rename(other.string, home.vault.string) == 0)
        #expect(try !vault.isHeld())
        #expect(try AgentControl.vaults(at: home.place).isEmpty)
    }

    @Test func oneWhoseFileIsAwayIsLocked() throws {
        try storage.store(token: "fake", for: "k")
        try vault.lock()
        let (path, away) = (home.vault.removingLastComponent().string, home.path.appending("away").string)
        try #require(rename(path, away) == 0)
        #expect(try vault.lockState() == .locked)
        expectLocked { _ = try storage.retrieve(for: "k") }
        try #require(rename(away, path) == 0)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.retrieve(for: "k") == "fake")
    }

    /// Also one that nothing leads to when it locks: what is mounted there can be unmounted.
    @Test func oneWhoseDirectoryIsAwayIsClosed() throws {
        try storage.store(token: "fake", for: "k", policy: .whenUnlocked)
        let (path, away) = (home.vault.removingLastComponent().string, home.path.appending("away").string)
        try #require(rename(path, away) == 0)
        #expect(try vault.lock())
        #expect(!agent.server.vaults.isAnyOpen && openFiles == [])
        #expect(try vault.lockState() == .locked)
        try #require(rename(away, path) == 0)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.retrieve(for: "k") == "fake")
    }

    /// By every path that led to it.
    @Test func oneWhoseDirectoryIsAwayCanBeLocked() throws {
        try storage.store(token: "fake", for: "k", policy: .whenUnlocked)
        let (path, away) = (home.vault.removingLastComponent(), home.path.appending("away"))
        let link = home.path.appending("link")
        try #require(symlink("vaults", link.string) == 0)
        try #require(rename(path.string, away.string) == 0)
        let name = try #require(home.vault.lastComponent)
        for path in [link, home.path.appending("./link/../vaults")] {
            try #require(rename(away.string, home.vault.removingLastComponent().string) == 0)
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
            try #require(rename(home.vault.removingLastComponent().string, away.string) == 0)
            let other = BlockingAgentVault(
                at: path.appending(name), agent: home.place, timeout: .seconds(300))
            #expect(try other.lock())
            #expect(try vault.lockState() == .locked)
        }
    }

    @Test func itCanBeLetGoOf() throws {
        try vault.lock()
        #expect(try vault.release())
        #expect(try !vault.isHeld() && !vault.release() && !vault.lock())
    }

    /// An item is readable after a concurrent lock, or its store was refused. In some rounds the store or the
    /// lock comes first, so both orders occur however the threads run. In the other rounds they run at the
    /// same time.
    @Test func whatIsStoredWhileItLocksCanBeRead() throws {
        // Without this item, the agent would know the vault to be empty.
        try storage.store(token: "fake", for: "dark", policy: .whenUnlocked)
        var (stored, refused) = (0, 0)
        for round in 0..<100 {
            let outcome = Monitor(Result<Void, TokenStorageError>?.none)
            let key = TokenKey("\(round)")
            if round % 10 == 1 { try vault.lock() }
            WorkerThread(name: "writer").run { [agent] in
                let storage = agent.vault().storage(service: "s")
                let result = Result { () throws(TokenStorageError) in
                    _ = try storage.store(token: "fake", for: key, policy: .afterFirstUnlock)
                }
                outcome.announce { $0 = result }
            }
            if round % 10 == 0 { _ = outcome.wait { $0 } }
            for _ in 0...round % 3 { try vault.lock() }
            switch outcome.wait({ $0 }) {
            case .success:
                stored += 1
                #expect(try storage.retrieve(for: key) == "fake")
                try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
                try storage.delete(for: key)
            case .failure(let error):
                refused += 1
                #expect(error.code == .locked)
                expectLocked { _ = try storage.retrieve(for: key) }
                try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
            }
        }
        #expect(stored >= 10 && refused >= 10, "\(stored) stored, \(refused) refused")
    }

    /// However unlocks, locks and reads meet, each ends as it would alone.
    @Test func locksAndUnlocksMayMeet() throws {
        try storage.store(token: "fake", for: "dark", policy: .whenUnlocked)
        let wrongs = Mutex<Set<String>>([])
        let running = Monitor(3)
        for number in 0..<3 {
            WorkerThread(name: "user").run { [agent, home] in
                let vault = agent.vault()
                for _ in 0..<100 {
                    do throws(TokenStorageError) {
                        switch number {
                        case 0: try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
                        case 1: try vault.lock()
                        default:
                            let token = try vault.storage(service: "s").retrieve(for: "dark")
                            if token != "fake" { wrongs.withLock { _ = $0.insert("read nothing") } }
                        }
                    } catch {
                        if error.code != .locked { wrongs.withLock { _ = $0.insert("\(number): \(error)") } }
                    }
                }
                running.announce { $0 -= 1 }
            }
        }
        running.wait { $0 == 0 ? () : nil }
        #expect(wrongs.withLock { $0 } == [])
        try vault.lock()
        #expect(waitUntilClosed())
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.retrieve(for: "dark") == "fake")
    }
}
