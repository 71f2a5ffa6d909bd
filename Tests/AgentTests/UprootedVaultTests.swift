import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// Changes to a vault's file under an agent that holds the vault. Clients get an error and no old item, and
/// the agent goes on.
@Suite(.tags(.programs), .from(.usual)) struct UprootedVaultTests {
    let agent: TestAgent
    let vault: BlockingAgentVault
    var home: TestHome { agent.home }

    init() throws {
        agent = try TestAgent()
        vault = try agent.unlockedVault()
        try vault.storage(service: "s").store(token: "first", for: "k")
        let old = agent.home.path.appending("old.vault").string
        try #require(try Program.run("/bin/cp", ["-p", agent.home.vault.string, old]) == 0)
        try vault.storage(service: "s").store(token: "second", for: "k")
        #expect(try vault.storage(service: "s").retrieve(for: "k") == "second")
    }

    enum Change: CaseIterable {
        case destroyed, unlinked, emptied, overwritten, cut, olderCopy, olderBytes, anotherVault, directory,
            link
    }

    private func make(_ change: Change) throws {
        let path = home.vault.string
        let old = home.path.appending("old.vault").string
        func write(_ bytes: [UInt8]) throws {
            let file = try FileDescriptor.open(path, .writeOnly, options: [.truncate])
            try file.closeAfter { _ = try file.writeAll(bytes) }
        }
        switch change {
        case .destroyed:
            try BlockingFileVault.destroy(at: home.vault, configuration: home.configuration)
        case .unlinked: try #require(unlink(path) == 0)
        case .emptied: try write([])
        case .overwritten:
            try write((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        case .cut:
            // The cut is inside the last record: behind it there is only spare room.
            let bytes = try SmallFile.read(home.vault, limit: 4 << 20).bytes
            let last = try #require(bytes.lastIndex { $0 != 0 })
            try #require(truncate(path, last - 10) == 0)
        case .olderCopy: try #require(rename(old, path) == 0)
        case .olderBytes: try write(try SmallFile.read(FilePath(old), limit: 1 << 20).bytes)
        case .anotherVault:
            let other = home.path.appending("other.vault")
            try BlockingFileVault.create(
                at: other, unlockMethod: TestHome.keyFile,
                configuration: FileVaultConfiguration(stateDirectory: nil, keyDerivationCost: .minimum)
            ).close()
            try #require(rename(other.string, path) == 0)
        case .directory: try #require(unlink(path) == 0 && mkdir(path, 0o700) == 0)
        case .link: try #require(unlink(path) == 0 && symlink(old, path) == 0)
        }
    }

    @Test(arguments: Change.allCases)
    func noOldItemIsToldOfWhatIsNotThereAnyMore(_ change: Change) throws {
        let storage = vault.storage(service: "s")
        try make(change)
        for round in 1...2 {
            for call in [
                { _ = try storage.retrieve(for: "k") }, { _ = try storage.metadata(for: "k") },
                { _ = try storage.list() }, { _ = try vault.listAllServices() },
                { _ = try storage.store(token: "third", for: "l") },
            ] as [() throws -> Void] {
                let error = #expect(throws: TokenStorageError.self, "\(change), \(round)") { try call() }
                #expect(error?.code != .outcomeUnknown && error?.code != .internalError, "\(error as Any)")
            }
        }
        // These calls may return anything, and the agent goes on serving.
        _ = try? vault.status()
        _ = try? vault.lockState()
        #expect(try AgentControl.isRunning(at: home.place))
        let next = home.path.appending("next.vault")
        try BlockingFileVault.create(
            at: next, unlockMethod: TestHome.keyFile, configuration: home.configuration
        ).close()
        let other = BlockingAgentVault(at: next, agent: home.place, timeout: .seconds(300))
        try other.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        try other.storage(service: "s").store(token: "fine", for: "k")
        #expect(try other.storage(service: "s").retrieve(for: "k") == "fine")
    }

    @Test func aVaultThatIsRestoredIsWhatClientsSee() throws {
        let copy = try VaultCopy.open(
            at: home.path.appending("old.vault"), configuration: home.configuration)
        try copy.unlock(with: TestHome.keyFile)
        _ = try copy.restore(to: home.vault)
        copy.close()
        let storage = vault.storage(service: "s")
        // The call gives the restored value, or an error until the next unlock. It never gives the value that
        // is gone.
        let told = Result { () throws(TokenStorageError) in try storage.retrieve(for: "k") }
        if case .success(let token) = told { #expect(token == "first") }
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try storage.retrieve(for: "k") == "first")
        try storage.store(token: "third", for: "k")
        #expect(try home.open().storage(service: "s").retrieve(for: "k") == "third")
    }

    /// The whole directory is moved away, and a copy put in its place: what is acknowledged is in the vault that is there.
    @Test func aDirectoryThatWasReplacedIsNotWrittenTo() throws {
        let directory = home.vault.removingLastComponent().string
        try #require(rename(directory, directory + ".away") == 0)
        try #require(try Program.run("/bin/cp", ["-a", directory + ".away", directory]) == 0)
        let storage = vault.storage(service: "s")
        // A store fails. A read finds that the agent does not hold the vault that is there now, and reports
        // it as locked.
        for (call, code) in [
            ({ _ = try storage.store(token: "third", for: "k") }, .unavailable),
            ({ _ = try storage.retrieve(for: "k") }, .locked), ({ _ = try storage.list() }, .locked),
        ] as [(() throws -> Void, TokenStorageError.Code)] {
            let error = #expect(throws: TokenStorageError.self) { try call() }
            #expect(error?.code == code, "\(error as Any)")
        }
        #expect(try vault.isHeld() == false)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        try storage.store(token: "third", for: "k")
        #expect(try home.open().storage(service: "s").retrieve(for: "k") == "third")
        try #require(try Program.run("/bin/rm", ["-rf", directory + ".away"]) == 0)
        #expect(try storage.retrieve(for: "k") == "third")
    }

    /// A new directory takes the old one's path and gets the same vault file. The agent would write files
    /// beside the vault, as in a compaction, to the old directory.
    @Test func aDirectoryThatWasMadeAnewIsNotWrittenTo() throws {
        let directory = home.vault.removingLastComponent().string
        try #require(rename(directory, directory + ".away") == 0 && mkdir(directory, 0o700) == 0)
        try #require(rename("\(directory).away/test.vault", home.vault.string) == 0)
        let storage = vault.storage(service: "s")
        let error = #expect(throws: TokenStorageError.self) {
            try storage.store(token: "third", for: "k")
        }
        #expect(error?.code == .unavailable, "\(error as Any)")
        // Nothing of the refused store was written. From the next unlock on, the agent uses the vault that is
        // there.
        #expect(try home.open().storage(service: "s").retrieve(for: "k") == "second")
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        try storage.store(token: "third", for: "k")
        #expect(try storage.retrieve(for: "k") == "third")
        let left = try PosixDirectory(FilePath(directory + ".away")).names()
        #expect(left == [])
    }

    /// Another vault is copied over the file that is held: the same file, and not the vault that the agent has keys of.
    @Test func anotherVaultInTheSameFileIsNotHeld() throws {
        let other = home.path.appending("other.vault")
        try BlockingFileVault.create(
            at: other, unlockMethod: TestHome.keyFile,
            configuration: FileVaultConfiguration(stateDirectory: nil, keyDerivationCost: .minimum)
        ).close()
        func copy() throws {
            try #require(try Program.run("/bin/cp", [other.string, home.vault.string]) == 0)
            try #require(unlink(other.string) == 0)
        }
        try copy()
        let connection = try AgentConnection(to: home.place, within: .seconds(300))
        // The client gets this failure with its first answer.
        #expect {
            try connection.perform(
                .secret(service: "s", key: "k"), on: VaultReference(at: home.vault), within: .seconds(300)
            ) { (reader, _) throws(WireError) in
                _ = try reader.optional { (reader) throws(WireError) in try reader.secret() }
            }
        } throws: {
            if case .notHeld? = $0 as? AgentConnection.Failure { true } else { false }
        }
        #expect(try vault.isHeld() == false)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: nil)
        #expect(try vault.storage(service: "s").list().items.isEmpty)
    }

    /// The same of a vault that is locked.
    @Test func aLockedVaultThatIsAnotherByNowIsNotHeld() throws {
        let storage = vault.storage(service: "s")
        try storage.store(token: "dark", for: "d", policy: .whenUnlocked)
        try vault.lock()
        let other = home.path.appending("other.vault")
        try BlockingFileVault.create(
            at: other, unlockMethod: TestHome.keyFile,
            configuration: FileVaultConfiguration(stateDirectory: nil, keyDerivationCost: .minimum)
        ).close()
        try #require(try Program.run("/bin/cp", [other.string, home.vault.string]) == 0)
        try #require(unlink(other.string) == 0)
        #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "d") }
        #expect(try AgentControl.vaults(at: home.place).isEmpty)
    }

    @Test func aFileThatIsOpenToOthersIsNotRead() throws {
        let storage = vault.storage(service: "s")
        try #require(chmod(home.vault.string, 0o644) == 0)
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "k") }
        #expect(error?.code == .insecurePermissions, "\(error as Any)")
        try #require(chmod(home.vault.string, 0o600) == 0)
        #expect(try storage.retrieve(for: "k") == "second")
    }

    /// A key that opens a part takes nothing away, wherever this device's keys are.
    @Test func anotherStateDirectoryIsNoWayAroundTheScope() throws {
        let narrow = UnlockMethod.keyFile(Secret(utf8: "a narrow unreal key 0123456789abcdef0123456789"))
        let direct = try home.open()
        _ = try direct.addSlot(narrow, scope: .afterFirstUnlock)
        direct.close()
        let storage = vault.storage(service: "s")
        try storage.store(token: "dark", for: "d", policy: .whenUnlocked)
        try vault.unlock(with: narrow, stateDirectory: nil)
        #expect(try storage.retrieve(for: "d") == "dark")
    }

    /// Where this device's keys are is said with every unlock, not only the first.
    @Test func anotherStateDirectoryCounts() throws {
        let storage = vault.storage(service: "s")
        try storage.store(token: "own", for: "device", policy: .whenUnlockedThisDeviceOnly)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: nil)
        #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "device") }
        // The vault was open, and the earlier unlock had set the time.
        #expect(try vault.status()?.idleTime == .seconds(900))
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state, lockingAfter: .seconds(7_200))
        #expect(try storage.retrieve(for: "device") == "own")
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.path.appending("other"))
        #expect(try vault.status()?.idleTime == .seconds(7_200))
    }
}
