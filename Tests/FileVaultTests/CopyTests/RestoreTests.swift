import Glibc
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Putting a copy in the vault's place, on purpose.
@Suite struct RestoreTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    /// A backup from before changes, and the vault that has them.
    private func withBackup() throws -> BlockingFileVault {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "backup")
        let storage = vault.storage(service: "s")
        try storage.store(token: "second a", for: "a")
        try storage.delete(for: "b")
        try storage.store(token: "later", for: "c")
        return vault
    }

    @Test func anOlderCopyIsPutBack() throws {
        let vault = try withBackup()
        let last = try #require(try vault.storage(service: "s").metadata(for: "c")?.generation)
        vault.close()
        let before = try sandbox.bytes()
        let backup = try sandbox.bytes(of: "backup")
        let report = try sandbox.copy("backup").restore(to: sandbox.vault)
        #expect(report.items == 2 && report.notes.isEmpty && report.staleCopy == nil)
        #expect(report.replaced == sandbox.path(of: "test.vault.replaced"))
        let again = try sandbox.opened()
        #expect(try values(in: again) == ["a": "first a", "b": "first b"])
        #expect(try again.verify().isClean && again.status().rollbackProtection == .anchored)
        // No generation is used again, so a comparison with a lost generation fails.
        #expect(try again.storage(service: "s").store(token: "new", for: "d") > last)
        #expect(try sandbox.bytes(of: "backup") == backup)
        // The kept file is the previous vault, except for the notice that sends readers to the new file.
        let kept = try sandbox.bytes(of: "test.vault.replaced")
        let end = try #require(before.lastIndex { $0 != 0 }) + 1
        #expect(kept.count == before.count && kept.prefix(end) == before.prefix(end))
        // The kept file can be restored as well.
        again.close()
        let other = try sandbox.copy("test.vault.replaced").restore(to: sandbox.vault)
        #expect(other.replaced == sandbox.path(of: "test.vault.replaced-2"))
        let last2 = try sandbox.opened()
        #expect(try values(in: last2) == ["a": "second a", "c": "later"])
        #expect(try last2.verify().isClean)
        #expect(
            try sandbox.names
                == ["test.vault", "backup", "test.vault.replaced", "test.vault.replaced-2"])
    }

    /// An open vault goes on with the restored file, and loses nothing that it stores afterwards.
    @Test func whoHasItOpenGoesOn() throws {
        let reader = try withBackup()
        let writer = try sandbox.opened()
        #expect(try writer.storage(service: "s").retrieve(for: "c") == "later")
        _ = try sandbox.copy("backup").restore(to: sandbox.vault)
        #expect(try values(in: reader) == ["a": "first a", "b": "first b"])
        try writer.storage(service: "s").store(token: "after", for: "d")
        #expect(try reader.storage(service: "s").retrieve(for: "d") == "after")
        #expect(try sandbox.opened().storage(service: "s").retrieve(for: "d") == "after")
        #expect(try reader.storage(service: "s").retrieve(for: "c") == nil)
    }

    /// The vault refuses an older copy that another program put at its path. Restoring that copy in place
    /// makes it valid.
    @Test func overAVaultThatSaysRolledBack() throws {
        try withBackup().close()
        try sandbox.write(try sandbox.bytes(of: "backup"))
        #expect(failure { _ = try sandbox.opened() }?.code == .rolledBack)
        let report = try sandbox.copy(nil).restore(to: sandbox.vault)
        #expect(report.replaced == nil)
        #expect(try values(in: try sandbox.opened()) == ["a": "first a", "b": "first b"])
        #expect(try sandbox.opened().verify().isClean)
    }

    @Test(arguments: [17_000, 8_200, 100]) func overADamagedVault(place: Int) throws {
        try withBackup().close()
        var bytes = try sandbox.bytes()
        for offset in place..<place + 200 { bytes[offset] ^= 0x5a }
        try sandbox.write(bytes)
        let report = try sandbox.copy("backup").restore(to: sandbox.vault)
        #expect(report.replaced == sandbox.path(of: "test.vault.replaced"))
        #expect(try sandbox.bytes(of: "test.vault.replaced").count == bytes.count)
        let again = try sandbox.opened()
        #expect(try values(in: again) == ["a": "first a", "b": "first b"])
        #expect(try again.verify().isClean)
    }

    @Test func whereNothingIs() throws {
        try withBackup().close()
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        try directory.remove("test.vault")
        #expect(try sandbox.copy("backup").restore(to: sandbox.vault).replaced == nil)
        #expect(try values(in: try sandbox.opened()) == ["a": "first a", "b": "first b"])
        // An empty file is not kept.
        try sandbox.write([])
        #expect(try sandbox.copy("backup").restore(to: sandbox.vault).replaced == nil)
        #expect(try values(in: try sandbox.opened()) == ["a": "first a", "b": "first b"])
        #expect(try sandbox.names == ["test.vault", "backup"])
    }

    /// With the state directory this device's keys are lost, not the rest.
    @Test func afterALostStateDirectory() throws {
        let vault = try withBackup()
        try vault.storage(service: "s").store(token: "anywhere", for: "p", policy: .whenUnlocked)
        vault.close()
        try sandbox.keepCopy(as: "newer")
        removeTree(sandbox.path.appending("state"))
        _ = try sandbox.copy("newer").restore(to: sandbox.vault)
        let again = try sandbox.opened()
        #expect(try again.storage(service: "s").retrieve(for: "p") == "anywhere")
        #expect(failure { _ = try again.storage(service: "s").retrieve(for: "a") }?.code == .wrongDevice)
        #expect(try again.status().rollbackProtection == .anchored)
    }

    @Test func whatIsSomethingElseIsLeftAlone() throws {
        try withBackup().close()
        let another = sandbox.path(of: "another.vault")
        _ = try BlockingFileVault.create(
            at: another, unlockMethod: keyFile, configuration: sandbox.configuration)
        let copy = try sandbox.copy("backup")
        let before = try sandbox.bytes(of: "another.vault")
        #expect(failure { _ = try copy.restore(to: another) }?.code == .alreadyExists)
        #expect(try sandbox.bytes(of: "another.vault") == before)
        try sandbox.write(Array("a letter".utf8), to: "letter")
        #expect(failure { _ = try copy.restore(to: sandbox.path(of: "letter")) }?.code == .notAVault)
        // This device knows the vault at another path.
        #expect(failure { _ = try copy.restore(to: sandbox.path(of: "second")) }?.code == .duplicateVault)
        #expect(try sandbox.names == ["test.vault", "backup", "another.vault", "letter"])
    }

    @Test func itTakesWhatOpensEverythingOfTheCopy() throws {
        let vault = try withBackup()
        let copy = try VaultCopy.open(at: sandbox.path(of: "backup"), configuration: sandbox.configuration)
        #expect(failure { _ = try copy.restore(to: sandbox.vault) }?.code == .locked)
        let wrong = UnlockMethod.keyFile(Secret(utf8: "another key that is not real 0123456789"))
        #expect(failure { try copy.unlock(with: wrong) }?.code == .wrongPassphrase)
        _ = try vault.addSlot(.passphrase(Secret(utf8: "not a real passphrase")))
        let part = UnlockMethod.keyFile(Secret([UInt8](repeating: 0x55, count: 32)))
        _ = try vault.addSlot(part)
        vault.close()
        try sandbox.keepCopy(as: "third")
        let third = try VaultCopy.open(at: sandbox.path(of: "third"), configuration: sandbox.configuration)
        #expect(third.slots.count == 3 && third.identifier == vault.identifier)
        try third.unlock(with: part)
        #expect(failure { _ = try third.restore(to: sandbox.vault) }?.code == .notPermitted)
        // The restored vault has the slots of the copy again.
        #expect(failure { try copy.unlock(with: part) }?.code == .wrongPassphrase)
        try copy.unlock(with: keyFile)
        _ = try copy.restore(to: sandbox.vault)
        #expect(try sandbox.opened().slots().count == 1)
    }

    @Test func aDamagedCopyIsRefused() throws {
        try withBackup().close()
        let whole = try sandbox.bytes(of: "backup")
        let before = try sandbox.bytes()
        for place in [16_900, 17_300, 17_700] {
            var bytes = whole
            bytes[place] ^= 1
            try sandbox.write(bytes, to: "backup")
            let failed = failure { _ = try sandbox.copy("backup").restore(to: sandbox.vault) }
            #expect(failed?.code == .corrupt, "\(place)")
        }
        #expect(try sandbox.bytes() == before)
        // One whole copy of its keybag is enough, and the report notes that the other copy is damaged.
        var bytes = whole
        bytes[300] ^= 1
        try sandbox.write(bytes, to: "backup")
        #expect(try sandbox.copy("backup").restore(to: sandbox.vault).notes.count == 1)
        #expect(try sandbox.opened().verify().isClean)
    }

    /// From where others may read it, or from a disk that nothing can be written to.
    @Test func whoeverOwnsTheCopy() throws {
        try withBackup().close()
        #expect(chmod(sandbox.path(of: "backup").string, 0o444) == 0)
        _ = try sandbox.copy("backup").restore(to: sandbox.vault)
        #expect(try values(in: try sandbox.opened()) == ["a": "first a", "b": "first b"])
        let mode = try PosixDirectory(sandbox.vault.removingLastComponent()).attributes(of: "test.vault")?
            .mode
        #expect(mode == 0o600)
    }

    @Test func itWaitsForAWriterAndNoLonger() throws {
        try withBackup().close()
        var hasty = sandbox.configuration
        hasty.lockTimeout = .milliseconds(20)
        let copy = try VaultCopy.open(at: sandbox.path(of: "backup"), configuration: hasty)
        try copy.unlock(with: keyFile)
        let writer = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        #expect(try writer.tryLock(.exclusive))
        #expect(failure { _ = try copy.restore(to: sandbox.vault) }?.code == .timedOut)
        writer.unlock()
        _ = try copy.restore(to: sandbox.vault)
    }

    /// The time counts from where it was set, however often something waits.
    @Test func whatAllMayTakeTogetherBoundsEachWait() throws {
        let vault = try withBackup()
        let held = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        var configuration = sandbox.configuration
        configuration.lockTimeout = .seconds(30)
        configuration.deadline = Deadline(after: .milliseconds(20))
        let backup = try VaultCopy.open(at: sandbox.path(of: "backup"), configuration: configuration)
        let own = try VaultCopy.open(at: sandbox.vault, configuration: configuration)
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        for copy in [backup, own] { try copy.unlock(with: keyFile) }
        try other.unlock(with: keyFile)
        #expect(try held.tryLock(.exclusive))
        let out = sandbox.path(of: "out")
        let begin = ContinuousClock.now
        for call: () throws -> Void in [
            { _ = try backup.restore(to: sandbox.vault) }, { _ = try own.adopt() },
            { _ = try own.salvage(to: out) }, { _ = try other.verify() }, { _ = try other.compact() },
            { try other.storage(service: "s").store(token: "x", for: "y") },
            { try BlockingFileVault.destroy(at: sandbox.vault, configuration: configuration) },
        ] {
            #expect(failure(call)?.code == .timedOut)
            try #require(begin.duration(to: .now) < .seconds(30))
        }
        // The wait for a copy that another program writes to has the same limit.
        held.unlock()
        let source = try PosixDirectory(sandbox.vault.removingLastComponent()).open("backup", .readWrite)
        #expect(try source.tryLock(.exclusive))
        #expect(failure { _ = try backup.restore(to: sandbox.vault) }?.code == .timedOut)
        #expect(try values(in: vault) == ["a": "second a", "c": "later"])
    }

    /// The kept file is private to this user, whatever mode the replaced file had.
    @Test func whatIsKeptIsPrivate() throws {
        try withBackup().close()
        #expect(chmod(sandbox.vault.string, 0o666) == 0)
        _ = try sandbox.copy("backup").restore(to: sandbox.vault)
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        for name in ["test.vault", "test.vault.replaced"] {
            let attributes = try directory.attributes(of: name)
            #expect(attributes?.mode == 0o600 && attributes?.owner == getuid(), "\(name)")
        }
    }

    /// The copy brings back the root key from before a rotation. A vault that is open under the newer root
    /// key is locked.
    @Test func aCopyFromBeforeARevocation() throws {
        let vault = try withBackup()
        _ = try vault.rotateKeys(keeping: [keyFile])
        _ = try sandbox.copy("backup").restore(to: sandbox.vault)
        #expect(failure { _ = try vault.storage(service: "s").retrieve(for: "a") }?.code == .locked)
        try vault.unlock(with: keyFile)
        #expect(try values(in: vault) == ["a": "first a", "b": "first b"])
    }

    /// Writers that are at it while copies are put back: what each was told after the last time is there.
    @Test func noAcknowledgedWriteIsLost() throws {
        try withBackup().close()
        let told = Monitor([Int: (value: Int, generation: UInt64)]())
        let isOver = Monitor(false)
        let failures = Monitor([String]())
        let ended = Monitor(0)
        let threads = (0..<3).map { WorkerThread(name: "writer \($0)") }
        for (number, thread) in threads.enumerated() {
            let vault = try sandbox.opened()
            thread.run {
                let storage = vault.storage(service: "s")
                var value = 0
                while !isOver.withLock({ $0 }) {
                    value += 1
                    do {
                        let generation = try storage.store(
                            token: "\(value)", for: TokenKey("writer \(number)"))
                        told.announce { $0[number] = (value, generation.rawValue) }
                    } catch {
                        failures.withLock { $0.append("\(error)") }
                    }
                }
                ended.announce { $0 += 1 }
            }
        }
        var base: UInt64 = 0
        for _ in 0..<6 {
            _ = told.wait { $0.count == 3 ? true : nil }
            _ = try sandbox.copy("backup").restore(to: sandbox.vault)
            let vault = try sandbox.opened()
            let last = try vault.storage(service: "s").store(token: "mark", for: "mark").rawValue
            // Other writers may have written between the restore and the mark.
            base = last
            told.announce { $0 = [:] }
            vault.close()
        }
        _ = told.wait { $0.count == 3 && $0.values.allSatisfy { $0.generation > base } ? true : nil }
        isOver.announce { $0 = true }
        _ = ended.wait { $0 == 3 ? true : nil }
        #expect(failures.withLock { $0 } == [])
        let vault = try sandbox.opened()
        for (number, last) in told.withLock({ $0 }) {
            let found = try vault.storage(service: "s").item(for: TokenKey("writer \(number)"))
            #expect(found?.metadata.generation.rawValue == last.generation)
            #expect(found?.secret.unprotectedText() == "\(last.value)")
        }
        #expect(try vault.verify().isClean)
    }

    @Test func destroyingTakesWhatWasKept() throws {
        try withBackup().close()
        _ = try sandbox.copy("backup").restore(to: sandbox.vault)
        try sandbox.write(Array("a letter".utf8), to: "test.vault.replaced-letter")
        try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(try sandbox.names == ["backup", "test.vault.replaced-letter"])
    }

    /// A file whose keybag is damaged, here or where it was kept, has all of its items still.
    @Test(arguments: [false, true]) func destroyingTakesWhatIsDamaged(isKept: Bool) throws {
        try withBackup().close()
        _ = try sandbox.copy("backup").restore(to: sandbox.vault)
        let name = isKept ? "test.vault.replaced" : "test.vault"
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        let file = try directory.open(name, .readWrite)
        for place in [1_000, VaultFormat.keybagLength + 1_000] { try file.write([0x55], at: place) }
        try sandbox.write(Array("a letter".utf8), to: "test.vault.replaced-2")
        try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(try sandbox.names == ["backup", "test.vault.replaced-2"])
        #expect(try PosixDirectory(sandbox.path.appending("state")).names() == [])
    }

    /// A new file that a crash kept from its name holds all of the vault.
    @Test func destroyingTakesWhatWasNotFinished() throws {
        try withBackup().close()
        for name in [".test.vault.0123456789abcdef", ".test.vault.0123456789abcdeg", ".test.vault.new"] {
            try sandbox.keepCopy(as: name)
        }
        try sandbox.write(Array("a letter".utf8), to: ".test.vault.00000000000000ff")
        try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(
            try sandbox.names
                == ["backup", ".test.vault.0123456789abcdeg", ".test.vault.00000000000000ff"])
    }

    /// What a crash left behind the log is the next writer's to cut, also after a restore that did not come to its end.
    @Test func aRestoreThatFailsLeavesATornTailAsItWas() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "backup")
        try vault.storage(service: "s").store(token: String(repeating: "c", count: 4_000), for: "c")
        vault.close()
        var torn = try sandbox.bytes()
        let last = try #require(torn.lastIndex { $0 != 0 })
        for index in last - last % VaultFormat.sector - VaultFormat.sector...last { torn[index] = 0 }
        try sandbox.write(torn)
        let state = try PosixDirectory(sandbox.path.appending("state"))
        for name in try state.names() where name.hasSuffix(".anchor") { try state.remove(name) }

        let place = VaultLocation(
            directory: FixedDirectory(
                base: try PosixDirectory(sandbox.vault.removingLastComponent()), refusal: .ioError),
            name: "test.vault", state: state, path: sandbox.vault)
        let copy = try sandbox.copy("backup")
        #expect(failure { _ = try copy.restore(to: place) }?.code == .ioFailure)
        #expect(try sandbox.bytes() == torn)
        let again = try sandbox.opened()
        let report = try again.verify()
        #expect(report.isClean && !report.notes.isEmpty)
        try again.storage(service: "s").store(token: "second", for: "d")
        #expect(try values(in: again).count == 3 && again.verify().notes.isEmpty)
    }

    @Test func whatItBringsBackIsTold() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "backup")
        _ = try vault.addSlot(.keyFile(Secret([UInt8](repeating: 0x42, count: 32))))
        vault.close()
        // Only the record of what this device has seen is left to compare with.
        try PosixDirectory(sandbox.vault.removingLastComponent()).remove("test.vault")
        let report = try sandbox.copy("backup").restore(to: sandbox.vault)
        #expect(report.notes.count == 2)
    }
}
