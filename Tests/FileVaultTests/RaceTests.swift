import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// Calls that overtake each other.
@Suite struct RaceTests {
    /// Runs the bodies at once, each on a thread of its own, and waits for all.
    private func race(_ bodies: [@Sendable () -> Void]) {
        let left = Monitor(bodies.count)
        let threads = bodies.indices.map { WorkerThread(name: "racer-\($0)") }
        for (thread, body) in zip(threads, bodies) {
            thread.run {
                body()
                left.announce { $0 -= 1 }
            }
        }
        left.wait { $0 == 0 ? () : nil }
    }

    /// Each passphrase brings a pepper; the loser's must not replace the winner's, or the winner's items of
    /// that class would be gone.
    @Test func ofTwoFirstPassphrasesOneWinsAndOpensWhatIsStoredThen() throws {
        let sandbox = try Sandbox()
        for round in 0..<6 {
            let path = sandbox.path.appending("round-\(round).vault")
            var configuration = sandbox.configuration
            configuration.keyDerivationCost = .minimum
            let fixed = configuration
            let first = try BlockingFileVault.create(
                at: path, unlockMethod: keyFile, configuration: fixed)
            let second = try BlockingFileVault.open(at: path, configuration: fixed)
            try second.unlock(with: keyFile)
            let results = Mutex<[String: Result<VaultSlot, TokenStorageError>]>([:])
            race(
                [(first, "fake words one"), (second, "fake words two")].map { vault, words in
                    {
                        let result = Result { () throws(TokenStorageError) in
                            try vault.addSlot(.passphrase(Secret(utf8: words)))
                        }
                        results.withLock { $0[words] = result }
                    }
                })
            var winners: [String] = []
            for (words, result) in results.withLock({ $0 }) {
                switch result {
                case .success: winners.append(words)
                case .failure(let error):
                    #expect(error.code == .conflict || error.code == .notPermitted, "\(error)")
                }
            }
            try #require(winners.count == 1)
            let words = UnlockMethod.passphrase(Secret(utf8: winners[0]))
            let third = try BlockingFileVault.open(at: path, configuration: fixed)
            try third.unlock(with: words)
            try third.storage(service: "race")
                .store(token: "fake", for: "key", policy: .whenPasscodeSetThisDeviceOnly)
            third.close()
            let fourth = try BlockingFileVault.open(at: path, configuration: fixed)
            try fourth.unlock(with: words)
            #expect(try fourth.storage(service: "race").retrieve(for: "key") == "fake")
        }
    }

    /// An unlock runs while another thread changes the slots. The keybag that the unlock read may no longer
    /// be in use by the time it reads the log. That is neither damage nor a wrong key.
    @Test func unlockingIsNotDisturbedByChangesOfSlots() throws {
        let sandbox = try Sandbox()
        let configuration = sandbox.configuration
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: configuration)
        let path = sandbox.vault
        let other = UnlockMethod.keyFile(Secret([UInt8](repeating: 0x44, count: 32)))
        let isDone = Mutex(false)
        let failures = Mutex<[TokenStorageError]>([])
        let unlocks = Mutex(0)
        race([
            {
                defer { isDone.withLock { $0 = true } }
                do throws(TokenStorageError) {
                    for _ in 0..<60 { try vault.removeSlot(try vault.addSlot(other).id) }
                } catch {
                    failures.withLock { $0.append(error) }
                }
            },
            {
                while !isDone.withLock({ $0 }) {
                    do throws(TokenStorageError) {
                        let reader = try BlockingFileVault.open(at: path, configuration: configuration)
                        try reader.unlock(with: keyFile)
                        reader.close()
                        unlocks.withLock { $0 += 1 }
                    } catch {
                        failures.withLock { $0.append(error) }
                    }
                }
            },
        ])
        #expect(failures.withLock { $0 } == [])
        #expect(unlocks.withLock { $0 } > 0)
    }

    /// An unlock of a vault that is open wipes the keys that it brings others for: what is stored meanwhile takes those.
    @Test func storingIsNotDisturbedByAnotherUnlock() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = vault.storage(service: "race")
        let isDone = Mutex(false)
        let failures = Mutex<[TokenStorageError]>([])
        race([
            {
                defer { isDone.withLock { $0 = true } }
                do throws(TokenStorageError) {
                    for _ in 0..<1_000 { try vault.unlock(with: keyFile) }
                } catch {
                    failures.withLock { $0.append(error) }
                }
            },
            {
                while !isDone.withLock({ $0 }) {
                    do throws(TokenStorageError) {
                        try storage.commit(
                            (0..<20).map {
                                .store(
                                    Secret(utf8: "fake"), for: TokenKey("\($0)"),
                                    details: TokenDetails(policy: .whenUnlocked))
                            })
                    } catch {
                        failures.withLock { $0.append(error) }
                    }
                }
            },
        ])
        #expect(failures.withLock { $0 } == [])
    }

    /// A change of slots takes the keys of the new keybag; a `lock` in the middle of it is final.
    @Test func lockingDuringAChangeOfSlotsStays() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let writer = Mutex<BlockingFileVault?>(nil)
        let directory = HookedDirectory(disk.directory(0)) { writer.withLock { $0 }?.lock() }
        let vault = try SimulatedVault.open(at: SimulatedVault.location(directory, disk.directory(1)))
        writer.withLock { $0 = vault }
        #expect(try vault.lockState() == .unlocked)
        let slot = try vault.addSlot(SimulatedVault.key("second"))
        #expect(try vault.lockState() == .afterFirstUnlock)
        let error = try #require(throws: TokenStorageError.self) {
            try vault.storage(service: SimulatedVault.service).store(token: "fake", for: "key")
        }
        #expect(error.code == .locked)

        writer.withLock { $0 = nil }
        try vault.unlock(with: SimulatedVault.key("second"))
        try vault.removeSlot(slot.id)
        #expect(try vault.lockState() == .unlocked)
    }

    /// A change of slots between a look at the log and the read of the keybag replaces the copy that the log named.
    @Test(arguments: ["list", "slots", "unlock"])
    func changesOfSlotsWhileTheKeybagIsReadAreFollowed(_ call: String) throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let state = disk.directory(1)
        let writer = try SimulatedVault.open(at: SimulatedVault.location(disk.directory(0), state))
        let isDue = Mutex(0)
        let failures = Mutex<[TokenStorageError]>([])
        let directory = HookedDirectory(
            disk.directory(0),
            beforeReadingKeybags: {
                let number = isDue.withLock { due in
                    defer { due = max(0, due - 1) }
                    return due
                }
                guard number > 0 else { return }
                do throws(TokenStorageError) {
                    _ = try writer.addSlot(
                        .keyFile(Secret([UInt8](repeating: UInt8(number), count: 32))))
                } catch {
                    failures.withLock { $0.append(error) }
                }
            },
            beforeSynchronizing: {})
        let reader = try SimulatedVault.open(at: SimulatedVault.location(directory, state))
        _ = try writer.addSlot(SimulatedVault.key("second"))
        isDue.withLock { $0 = 3 }
        switch call {
        case "list": _ = try reader.storage(service: SimulatedVault.service).list()
        case "slots": #expect(try reader.slots().count == 5)
        default: try reader.unlock(with: SimulatedVault.key("first"))
        }
        #expect(isDue.withLock { $0 } == 0 && failures.withLock { $0 } == [])
        #expect(try reader.lockState() == .unlocked && writer.verify().isClean)
    }

    /// What is written but not synced may yet fail: a reader of the same handle sees it only once it is
    /// acknowledged. Another process may see it from when it is written, and no longer when it was taken back.
    @Test func aReaderDuringASyncThatFailsSeesWhatWasThere() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vaults = Mutex<(writer: BlockingFileVault?, other: BlockingFileVault?)>((nil, nil))
        let seen = Mutex<[String]>([])
        let directory = HookedDirectory(disk.directory(0)) { () throws(SystemFailure) in
            let (writer, other) = vaults.withLock { $0 }
            guard let writer, let other else { return }
            for vault in [writer, other] {
                do throws(TokenStorageError) {
                    let value = try vault.storage(service: SimulatedVault.service).retrieve(for: "key")
                    seen.withLock { $0.append(value ?? "absent") }
                } catch {
                    // The reader may wait for the writer while this thread waits for the reader.
                    seen.withLock { $0.append(error.code.rawValue) }
                }
            }
            vaults.withLock { $0 = (nil, nil) }
            throw SystemFailure(.ioError, "fdatasync")
        }
        let writer = try SimulatedVault.open(
            at: SimulatedVault.location(directory, disk.directory(1)))
        let storage = writer.storage(service: SimulatedVault.service)
        try storage.store(token: "old", for: "key")
        let other = try SimulatedVault.open(
            at: SimulatedVault.location(on: disk), lockTimeout: .milliseconds(1))
        vaults.withLock { $0 = (writer, other) }
        let error = try #require(throws: TokenStorageError.self) {
            try storage.store(token: "new", for: "key")
        }
        #expect(error.code == .ioFailure)
        let values = seen.withLock { $0 }
        #expect(values.count == 2 && values.first == "old", "\(values)")
        #expect(values.last == "old" || values.last == "new" || values.last == "timedOut", "\(values)")
        #expect(try storage.retrieve(for: "key") == "old")
        #expect(try other.storage(service: SimulatedVault.service).retrieve(for: "key") == "old")
    }
}
