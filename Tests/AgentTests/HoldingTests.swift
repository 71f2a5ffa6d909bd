import Glibc
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

@Suite(.tags(.programs), .from(.usual)) struct HoldingTests {
    @Test func whatIsStoredThroughTheAgentIsInTheFile() throws {
        let agent = try TestAgent()
        let vault = try agent.unlockedVault()
        let storage = vault.storage(service: "s")
        try storage.store(token: "not a real token", for: "k")
        let direct = try agent.home.open()
        #expect(try direct.storage(service: "s").retrieve(for: "k") == "not a real token")
        try direct.storage(service: "s").store(token: "another", for: "k")
        #expect(try storage.retrieve(for: "k") == "another")
        #expect(try storage.item(for: "k") == direct.storage(service: "s").item(for: "k"))
    }

    @Test func lockedIsFinalAndNotHeldIsNot() throws {
        let agent = try TestAgent()
        let vault = agent.vault()
        #expect(try vault.isHeld() == false && vault.lockState() == .locked)
        let own = try agent.unlockedVault()
        #expect(try vault.isHeld() && vault.lockState() == .unlocked)
        try own.storage(service: "s").store(token: "a", for: "dark")
        try own.storage(service: "s").store(token: "b", for: "open", policy: .afterFirstUnlock)
        #expect(try own.lock())
        #expect(try vault.isHeld() && vault.lockState() == .afterFirstUnlock)
        #expect(try vault.storage(service: "s").retrieve(for: "open") == "b")
        let error = #expect(throws: TokenStorageError.self) {
            try vault.storage(service: "s").retrieve(for: "dark")
        }
        #expect(error?.code == .locked)
        #expect(try own.release())
        #expect(try vault.isHeld() == false && vault.lockState() == .locked)
    }

    /// What was read of the vault that another takes the place of is taken back before a lock is acknowledged.
    @Test func whoLocksWhileItIsHeldAnewLocksBoth() throws {
        let home = try TestHome()
        let vaults = HeldVaults(limits: AgentLimits())
        defer { vaults.closeAll() }
        try vaults.unlock(at: home.vault, with: TestHome.keyFile, stateDirectory: home.state)
        let reference = VaultReference(at: home.vault)
        let former = try #require(vaults.vault(reference))
        let told = Monitor<[Bool]>([])
        let mayGoOn = Monitor(false)
        vaults.tellOfLocks { gone in
            let isFirst = told.announce { told in
                told.append(gone.contains { $0 === former })
                return told.count == 1
            }
            // The unlocking thread stops here, before it can report.
            if isFirst { mayGoOn.wait { $0 ? () : nil } }
        }
        let isDone = Monitor(false)
        WorkerThread(name: "another").run {
            try? vaults.unlock(
                at: home.vault, with: TestHome.keyFile, stateDirectory: home.path.appending("another"))
            isDone.announce { $0 = true }
        }
        told.wait { $0.isEmpty ? nil : () }
        #expect(vaults.lock(reference))
        #expect(told.withLock { $0 } == [true, true])
        mayGoOn.announce { $0 = true }
        isDone.wait { $0 ? () : nil }
    }

    @Test func aWrongKeyIsRefusedAndNothingIsHeld() throws {
        let agent = try TestAgent()
        let vault = agent.vault()
        let wrong = UnlockMethod.keyFile(Secret(utf8: "another unreal key 0123456789abcdef0123456789abcdef"))
        let error = #expect(throws: TokenStorageError.self) {
            try vault.unlock(with: wrong, stateDirectory: agent.home.state)
        }
        #expect(error?.code == .wrongPassphrase && error?.operation == "unlock")
        #expect(try vault.isHeld() == false)
        // A wrong key does not change a vault that is held.
        let own = try agent.unlockedVault()
        #expect(throws: TokenStorageError.self) {
            try vault.unlock(with: wrong, stateDirectory: agent.home.state)
        }
        #expect(try own.lockState() == .unlocked)
    }

    @Test func aPathWithLinksIsTheSameVault() throws {
        let agent = try TestAgent()
        _ = try agent.unlockedVault()
        let link = agent.home.path.appending("link")
        #expect(symlink(agent.home.path.appending("vaults").string, link.string) == 0)
        let vault = BlockingAgentVault(at: link.appending("test.vault"), agent: agent.place)
        #expect(try vault.lockState() == .unlocked)
        let other = BlockingAgentVault(at: link.appending("other.vault"), agent: agent.place)
        #expect(try other.isHeld() == false)
    }

    /// A lock names the vault without links: what was unlocked by another name would stay open.
    @Test(arguments: ["link/test.vault", "vaults/link.vault"])
    func aVaultIsNotUnlockedByWayOfALink(_ name: String) throws {
        let home = try TestHome()
        #expect(symlink("vaults", home.path.appending("link").string) == 0)
        #expect(symlink("test.vault", home.path.appending("vaults/link.vault").string) == 0)
        let agent = try LocalAgent(in: home)
        let order = UnlockOrder(
            method: TestHome.keyFile, stateDirectory: home.state, idleTime: .seconds(900))
        let connection = try AgentConnection(to: home.place, within: .seconds(300))
        let reference = VaultReference(path: home.path.appending(name))
        #expect {
            try connection.perform(.unlock(order), on: reference, within: .seconds(300)) {
                (reader, _) throws(WireError) in try reader.facts()
            }
        } throws: {
            guard case .refused(let error)? = $0 as? AgentConnection.Failure else { return false }
            return [.invalidArgument, .notAVault, .insecurePermissions, .unavailable].contains(error.code)
        }
        #expect(try AgentControl.vaults(at: home.place).isEmpty)
        withExtendedLifetime(agent) {}
    }

    @Test func anotherVaultInItsPlaceIsAnother() throws {
        let agent = try TestAgent()
        let vault = try agent.unlockedVault()
        try BlockingFileVault.destroy(at: agent.home.vault, configuration: agent.home.configuration)
        try BlockingFileVault.create(
            at: agent.home.vault, unlockMethod: TestHome.keyFile, configuration: agent.home.configuration
        ).close()
        // The vault that the agent holds is gone. No answer may look like an answer about the new vault.
        #expect(throws: TokenStorageError.self) {
            try vault.storage(service: "s").store(token: "a", for: "k")
        }
        #expect(try vault.isHeld() == false)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: agent.home.state)
        try vault.storage(service: "s").store(token: "b", for: "k")
        #expect(try agent.home.open().storage(service: "s").retrieve(for: "k") == "b")
    }

    /// A read finds another vault file at the held vault's path, so the agent releases the held vault. That
    /// release does not lock the new vault, which another client is unlocking.
    @Test func aReadDoesNotLockWhatIsBeingUnlocked() throws {
        let home = try TestHome()
        let agent = try LocalAgent(in: home)
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(300))
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        let words = UnlockMethod.passphrase(Secret(utf8: "fake words for a slow slot"))
        let other = home.path.appending("other.vault")
        var configuration = home.configuration
        configuration.keyDerivationCost = .moderate
        try BlockingFileVault.create(at: other, unlockMethod: words, configuration: configuration).close()
        try #require(rename(other.string, home.vault.string) == 0)
        try BlockingFileVault.forget(at: home.vault, configuration: home.configuration)
        let order = UnlockOrder(method: words, stateDirectory: home.state, idleTime: .seconds(900))
        let unlocking = try AgentConnection(to: home.place, within: .seconds(300))
        let pending = try unlocking.begin(
            .unlock(order), on: VaultReference(at: home.vault), within: .seconds(300))
        while agent.server.vaults.state.withLock({ $0.unlocking.isEmpty }) { sched_yield() }
        #expect(throws: TokenStorageError.self) { try vault.storage(service: "s").secret(for: "k") }
        _ = try unlocking.finish(pending) { (reader, _) throws(WireError) in try reader.facts() }
        #expect(try vault.lockState() == .unlocked)
    }

    /// The idle time ends while a second unlock derives its key. The second unlock still leaves the vault
    /// unlocked.
    @Test func whatIsIdleIsUnlockedAnew() throws {
        let home = try TestHome()
        var configuration = home.configuration
        configuration.keyDerivationCost = .moderate
        let direct = try BlockingFileVault.open(at: home.vault, configuration: configuration)
        try direct.unlock(with: TestHome.keyFile)
        let words = UnlockMethod.passphrase(Secret(utf8: "fake words for a slow slot"))
        _ = try direct.addSlot(words)
        direct.close()
        let agent = try LocalAgent(in: home)
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(300))
        try vault.unlock(
            with: TestHome.keyFile, stateDirectory: home.state, lockingAfter: .milliseconds(200))
        try vault.unlock(with: words, stateDirectory: home.state, lockingAfter: .seconds(900))
        #expect(try vault.lockState() == .unlocked)
        withExtendedLifetime(agent) {}
    }

    @Test func hangingUpLocksAndTerminatingEnds() throws {
        let agent = try TestAgent()
        let vault = try agent.unlockedVault()
        try vault.storage(service: "s").store(token: "fake", for: "open", policy: .afterFirstUnlock)
        var changes = 0
        agent.process.send(SIGHUP)
        // The agent's first thread handles the signal when it next looks, at the latest with the next client.
        while try agent.vault().lockState() == .unlocked { changes += 1 }
        #expect(try vault.lockState() == .afterFirstUnlock)
        agent.process.send(SIGTERM)
        #expect(agent.process.wait() == 0)
        #expect(try SmallFile.exists(agent.place.socket) == false)
        #expect(try vault.isHeld() == false)
    }

    @Test func anIdleVaultLocksItself() async throws {
        let agent = try TestAgent()
        let vault = agent.vault()
        try vault.unlock(
            with: TestHome.keyFile, stateDirectory: agent.home.state, lockingAfter: .seconds(900))
        try vault.storage(service: "s").store(token: "fake", for: "open", policy: .afterFirstUnlock)
        try vault.unlock(
            with: TestHome.keyFile, stateDirectory: agent.home.state, lockingAfter: .milliseconds(200))
        #expect(try vault.status()?.idleTime != nil)
        // A request for the state is no use of the vault, so the agent locks it while this loop runs.
        let deadline = Deadline(after: .seconds(300))
        while try vault.lockState() == .unlocked, !deadline.hasPassed {}
        #expect(try vault.lockState() == .afterFirstUnlock)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: agent.home.state, lockingAfter: nil)
        #expect(try vault.lockState() == .unlocked && vault.status()?.idleTime == nil)
    }

    /// An unlock with a key to a part of the vault does not weaken an unlock of everything. The idle time
    /// stays the same.
    @Test func anotherUnlockOfAnOpenVaultWeakensNothing() throws {
        let agent = try TestAgent()
        let state = agent.home.state
        let words = UnlockMethod.passphrase(Secret(utf8: "fake correct horse"))
        let narrow = UnlockMethod.keyFile(Secret(utf8: "another unreal key 0123456789abcdef0123456789abcdef"))
        let file = try agent.home.open()
        _ = try file.addSlot(words)
        _ = try file.addSlot(narrow, scope: .afterFirstUnlock)
        file.close()
        let vault = agent.vault()
        let storage = vault.storage(service: "s")
        func expect(
            everything isOpen: Bool, _ time: Duration?, sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            #expect(
                (try? storage.retrieve(for: "dark")) == (isOpen ? "a" : nil), sourceLocation: sourceLocation)
            #expect(try vault.status()?.idleTime == time, sourceLocation: sourceLocation)
        }
        try vault.unlock(with: words, stateDirectory: state, lockingAfter: .seconds(600))
        try storage.store(token: "a", for: "dark", policy: .whenUnlocked)
        try vault.unlock(with: narrow, stateDirectory: state, lockingAfter: nil)
        try expect(everything: true, .seconds(600))
        let wrong = UnlockMethod.keyFile(Secret(utf8: "a third unreal key 0123456789abcdef0123456789abcdef"))
        let error = #expect(throws: TokenStorageError.self) {
            try vault.unlock(with: wrong, stateDirectory: state, lockingAfter: nil)
        }
        #expect(error?.code == .wrongPassphrase)
        try expect(everything: true, .seconds(600))
        // A client that unlocks everything may set another time, but only explicitly.
        try vault.unlock(with: words, stateDirectory: state)
        try expect(everything: true, .seconds(600))
        try vault.unlock(with: TestHome.keyFile, stateDirectory: state, lockingAfter: .seconds(1_200))
        try expect(everything: true, .seconds(1_200))
        try vault.unlock(with: words, stateDirectory: state, lockingAfter: nil)
        try expect(everything: true, nil)
        // After a lock or a partial unlock, no earlier time is kept.
        try vault.lock()
        try vault.unlock(with: narrow, stateDirectory: state, lockingAfter: nil)
        try expect(everything: false, nil)
        try vault.unlock(with: words, stateDirectory: state)
        try expect(everything: true, .seconds(900))
    }

    @Test func thereIsABoundToTheVaultsThatAreHeld() throws {
        let home = try TestHome()
        let agent = try LocalAgent(in: home) { $0.vaults = 2 }
        let vaults = try (0..<3).map { number in
            let path = home.path.appending("vaults/\(number).vault")
            try BlockingFileVault.create(
                at: path, unlockMethod: TestHome.keyFile, configuration: home.configuration
            ).close()
            return BlockingAgentVault(at: path, agent: home.place, timeout: .seconds(300))
        }
        for vault in vaults[..<2] { try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state) }
        let error = #expect(throws: TokenStorageError.self) {
            try vaults[2].unlock(with: TestHome.keyFile, stateDirectory: home.state)
        }
        #expect(error?.code == .resourcesExhausted && error?.advice?.contains("agent --stop") == true)
        #expect(try AgentControl.vaults(at: home.place).count == 2)
        // The limit does not affect the vaults that are held already.
        try vaults[0].lock()
        try vaults[0].unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try vaults[1].release())
        try vaults[2].unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try vaults[2].lockState() == .unlocked)
        withExtendedLifetime(agent) {}
    }

    /// With the longest paths that there are, and the longest reason.
    @Test func whatIsSaidOfAllVaultsFitsIntoOneFrame() throws {
        let limits = AgentLimits()
        let home = try TestHome()
        let agent = try LocalAgent(in: home)
        _ = try agent.unlockedVault()
        agent.server.vaults.note(sessionObstacle: String(repeating: "é", count: 2_000))
        var status = try #require(try AgentControl.vaults(at: home.place).first)
        #expect((status.sessionObstacle?.utf8.count ?? 0) > 200)
        status.path = FilePath(String(repeating: "/long", count: 819) + "x")
        (status.items, status.reclaimable, status.isEnrolled, status.slot) = (1, 1, true, 1)
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        writer.begin(.result, id: 1)
        writer.append(UInt16(limits.vaults))
        for _ in 0..<limits.vaults { writer.append(status) }
        #expect(status.path.string.utf8.count == AgentWire.maximumPath && writer.end())
    }

    @Test func aKilledAgentLosesNothingAndStartsLocked() throws {
        let home = try TestHome()
        for round in 0..<5 {
            let agent = try TestAgent(in: home)
            let vault = try agent.unlockedVault()
            let storage = vault.storage(service: "s")
            for index in 0..<20 { try storage.store(token: "\(round)", for: "key \(index)") }
            agent.process.end(SIGKILL)
            #expect(throws: TokenStorageError.self) { try storage.store(token: "x", for: "y") }
            let next = try TestAgent(in: home)
            // The client continues with the next agent.
            #expect(try vault.isHeld() == false && vault.lockState() == .locked)
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
            for index in 0..<20 { #expect(try storage.retrieve(for: "key \(index)") == "\(round)") }
            next.process.end(SIGKILL)
        }
    }

    @Test func theProcessCannotBeLookedInto() throws {
        let agent = try TestAgent()
        var limit = [UInt8]()
        limit = try SmallFile.read(FilePath("/proc/\(agent.process.identifier)/limits"), limit: 64 << 10)
            .bytes
        let core = String(decoding: limit, as: UTF8.self).split(separator: "\n").first {
            $0.contains("core file")
        }
        #expect(core?.split(separator: " ").filter { $0 == "0" }.count == 2)
        // The process is not dumpable, so its files in /proc belong to root.
        var information = stat()
        #expect(lstat("/proc/\(agent.process.identifier)/mem", &information) == 0 && information.st_uid == 0)
    }

    @Test func changesComeAcrossClientsAndARestart() async throws {
        let home = try TestHome()
        let agent = try TestAgent(in: home)
        let vault = try agent.unlockedVault()
        let storage = AgentVault(vault).storage(service: "s")
        var told = storage.changes().makeAsyncIterator()
        let other = agent.vault().storage(service: "s")
        let first = try other.store(token: "a", for: "k")
        #expect(await told.next() == .stored("k", first))
        let second = try home.open().storage(service: "s").store(token: "b", for: "k")
        #expect(await told.next() == .stored("k", second))
        agent.process.end(SIGKILL)
        #expect(await told.next() == .overflowed)
        let next = try TestAgent(in: home)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(await told.next() == .overflowed)
        let third = try next.vault().storage(service: "s").store(token: "c", for: "k")
        #expect(await told.next() == .stored("k", third))
    }

    @Test func manyClientsAreServedBesideSomeThatMisbehaveAndMemoryIsFlat() async throws {
        let agent = try TestAgent()
        let big = Secret(repeatElement(UInt8(3), count: 300_000))
        try agent.unlockedVault().storage(service: "s").store(big, for: "big")
        /// A number of good clients and a few others, each at it for some rounds.
        func round() async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in 0..<24 {
                    group.addTask {
                        let storage = AgentVault(agent.vault()).storage(service: "s")
                        for step in 0..<40 {
                            let key = TokenKey("\(client)")
                            if step % 10 == 0 { try await storage.store(token: "\(step)", for: key) }
                            #expect(try await storage.retrieve(for: key) == "\(step / 10 * 10)")
                        }
                        #expect(try await storage.secret(for: "big") == big)
                    }
                }
                for _ in 0..<6 {
                    group.addTask {
                        for step in 0..<10 {
                            let client = try RawClient(agent.place)
                            switch step % 4 {
                            case 0: try client.send([0xff, 0xff, 0xff, 0xff, 1, 2, 3])
                            case 1: try client.send([200, 0, 0, 0, 1])
                            case 2: try client.ask(.secret(service: "s", key: "big"), agent.home, count: 3)
                            default: try client.ask(.subscribe(service: "s"), agent.home)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        try await round()
        try await round()
        let before = try agent.process.fact("VmRSS")
        for _ in 0..<3 { try await round() }
        let after = try agent.process.fact("VmRSS")
        #expect(after - before < 8 << 10, "\(before) kB, then \(after) kB")
    }

    @Test func whatIsAskedWhenTheAgentEndsIsAnswered() throws {
        let agent = try TestAgent()
        let vault = try agent.unlockedVault()
        let storage = vault.storage(service: "s")
        var stored = 0
        for index in 0..<200 {
            if index == 50 { agent.process.send(SIGTERM) }
            do {
                try storage.store(token: "\(index)", for: TokenKey("\(index)"))
                stored += 1
            } catch {
                // The agent ended between two requests, so no outcome is unknown.
                #expect(error.code == .unavailable)
                break
            }
        }
        #expect(agent.process.wait() == 0)
        #expect(try agent.home.open().storage(service: "s").list().items.count == stored)
    }

    /// An agent that does not answer keeps no thread of the tasks' own.
    @Test func tasksGoOnWhileTheAgentTakesItsTime() async throws {
        let agent = try TestAgent()
        let vault = try agent.unlockedVault()
        let home = agent.home
        let either = AgentOrFileVault(at: home.vault, agent: agent.place) { () throws(TokenStorageError) in
            throw TokenStorageError(.unavailable, operation: "open", backend: "test")
        }
        let storages: [any TokenStorage] = [
            AgentVault(vault).storage(service: "app"), either.storage(service: "app"),
        ]
        try await storages[0].store(token: "fake", for: "key")
        for storage in storages { #expect(try await storage.retrieve(for: "key") == "fake") }
        agent.process.send(SIGSTOP)
        let begun = Monitor(0)
        let asking = (0..<8).map { number in
            Task {
                begun.announce { $0 += 1 }
                return try await storages[number % 2].retrieve(for: "key")
            }
        }
        // There are more tasks than threads for them.
        while begun.withLock({ $0 < asking.count }) { await Task.yield() }
        agent.process.send(SIGCONT)
        for task in asking { #expect(try await task.value == "fake") }
    }

    /// A lock during an unlock also applies to the key that the unlock derives. The items that the lock
    /// closed stay locked.
    @Test func noUnlockUndoesALockThatCameAfterItBegan() throws {
        let home = try TestHome()
        let vault = try home.open()
        let storage = vault.storage(service: "s")
        try storage.store(Secret(utf8: "fake"), for: "key", details: TokenDetails(policy: .whenUnlocked))
        let orders = vault.lockOrders
        vault.lock()
        try vault.unlock(with: TestHome.keyFile, unlessToldToLockSince: orders)
        #expect(try vault.lockState() == .afterFirstUnlock)
        #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        try vault.unlock(with: TestHome.keyFile, unlessToldToLockSince: vault.lockOrders)
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func aLockDuringAnUnlockLeavesNothingReadable() throws {
        let home = try TestHome()
        let words = Secret(utf8: "fake correct horse")
        let file = try home.open()
        _ = try file.addSlot(.passphrase(words))
        try file.storage(service: "s").store(
            Secret(utf8: "fake"), for: "key", details: TokenDetails(policy: .whenUnlocked))
        file.close()
        let agent = try LocalAgent(in: home)
        let vault = try agent.unlockedVault()
        let storage = vault.storage(service: "s")
        var (overtaken, leaks) = (0, 0)
        for _ in 0..<40 {
            try vault.lock()
            let outcome = Monitor(Result<Void, TokenStorageError>?.none)
            WorkerThread(name: "unlocker").run {
                let result = Result { () throws(TokenStorageError) in
                    try vault.unlock(with: .passphrase(words), stateDirectory: home.state)
                }
                outcome.announce { $0 = result }
            }
            var isFound = false
            while outcome.withLock({ $0 == nil }) {
                try vault.lock()
                if (try? storage.retrieve(for: "key")) == "fake" { isFound = true }
            }
            guard case .failure(let error)? = outcome.withLock({ $0 }) else { continue }
            #expect(error.code == .locked)
            overtaken += 1
            if isFound { leaks += 1 }
        }
        #expect(overtaken > 0)
        // While this thread has to wait, a whole unlock may fall between a lock and the read after it.
        #expect(leaks * 5 <= overtaken, "\(leaks) of \(overtaken)")
        try vault.unlock(with: .passphrase(words), stateDirectory: home.state)
        #expect(try storage.retrieve(for: "key") == "fake")
    }
}
