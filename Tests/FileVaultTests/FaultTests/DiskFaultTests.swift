import HookedStorage
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// The disk fails: every call says so with the right code, and what was there before is there afterwards.
@Suite struct DiskFaultTests {
    /// What a failing step is to be told as.
    struct Failure: Sendable, CustomTestStringConvertible {
        var kind: DiskFault.Kind
        var errno: Errno
        var code: TokenStorageError.Code
        var bytesWritten = 0

        var testDescription: String { "\(kind): \(errno.description), \(bytesWritten) bytes written" }
    }

    static let failures = [
        Failure(kind: .write, errno: .noSpace, code: .noSpace),
        Failure(kind: .write, errno: .noSpace, code: .noSpace, bytesWritten: 512),
        Failure(kind: .write, errno: .diskQuotaExceeded, code: .noSpace, bytesWritten: 100),
        Failure(kind: .write, errno: .ioError, code: .ioFailure),
        Failure(kind: .write, errno: .ioError, code: .ioFailure, bytesWritten: 200),
        Failure(kind: .write, errno: .readOnlyFileSystem, code: .readOnly),
        Failure(kind: .synchronize, errno: .ioError, code: .ioFailure),
        Failure(kind: .synchronize, errno: .noSpace, code: .noSpace),
        Failure(kind: .synchronize, errno: .diskQuotaExceeded, code: .noSpace),
        Failure(kind: .lock, errno: .noLocks, code: .resourcesExhausted),
        Failure(kind: .attributes, errno: .ioError, code: .ioFailure),
        Failure(kind: .read, errno: .ioError, code: .ioFailure),
    ]

    /// A disk with a vault of two items, and the vault opened on it.
    private func open() throws -> (disk: SimulatedDisk, vault: BlockingFileVault, facts: Facts) {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let storage = vault.storage(service: SimulatedVault.service)
        try storage.store(token: "old", for: "kept")
        try storage.store(token: "other", for: "other")
        return (disk, vault, try SimulatedVault.facts(of: vault))
    }

    private func expectUnchanged(_ disk: SimulatedDisk, _ facts: Facts) throws {
        let again = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        #expect(try SimulatedVault.facts(of: again) == facts)
        #expect(try again.verify().problems == [])
        let generation = try again.storage(service: SimulatedVault.service).store(token: "new", for: "later")
        let highest = facts.values.map(\.generation).max() ?? 0
        #expect(generation.rawValue > highest)
        #expect(try again.verify().isClean)
    }

    /// Every occurrence of the failure within one store, one after the other.
    @Test(arguments: failures)
    func aFailingStoreChangesNothing(_ failure: Failure) throws {
        var failed = 0
        for skipping in 0..<8 {
            let (disk, vault, facts) = try open()
            disk.inject(
                DiskFault(
                    kind: failure.kind, directory: 0, skipping: skipping, errno: failure.errno,
                    bytesWritten: failure.bytesWritten))
            do {
                try vault.storage(service: SimulatedVault.service).store(token: "new", for: "kept")
                // The store has fewer steps of this kind.
                if skipping > 0 { break }
                Issue.record("the store has no step \(failure.kind)")
            } catch {
                failed += 1
                #expect(error.code == failure.code)
                #expect(error.operation == "store" || error.operation == "commit")
                disk.heal()
                #expect(try SimulatedVault.facts(of: vault) == facts)
                vault.close()
                try expectUnchanged(disk, facts)
            }
        }
        #expect(failed > 0)
    }

    /// The disk stays broken: not even the repair works.
    @Test(arguments: [Errno.ioError, .noSpace, .readOnlyFileSystem])
    func aDiskThatStaysBrokenIsToldAndHarmsNothing(_ errno: Errno) throws {
        let (disk, vault, facts) = try open()
        for kind: DiskFault.Kind in [.write, .synchronize, .create, .rename, .resize, .synchronizeDirectory] {
            disk.inject(DiskFault(kind: kind, directory: 0, times: .max, errno: errno))
        }
        let storage = vault.storage(service: SimulatedVault.service)
        for _ in 0..<2 {
            #expect(throws: TokenStorageError.self) { try storage.store(token: "new", for: "kept") }
            #expect(try storage.retrieve(for: "kept") == "old")
        }
        disk.heal()
        vault.close()
        try expectUnchanged(disk, facts)
    }

    /// An open vault whose writes failed writes to a new file once the disk works again. On the old file, a
    /// flush that succeeds may hide what an earlier flush failed with.
    @Test(arguments: [Errno.ioError, .noSpace, .readOnlyFileSystem])
    func aDiskThatWorksAgainIsWrittenTo(_ errno: Errno) throws {
        let (disk, vault, facts) = try open()
        for kind: DiskFault.Kind in [.write, .synchronize, .create, .rename, .resize, .synchronizeDirectory] {
            disk.inject(DiskFault(kind: kind, directory: 0, times: .max, errno: errno))
        }
        let storage = vault.storage(service: SimulatedVault.service)
        let error = try #require(throws: TokenStorageError.self) {
            try storage.store(token: "lost", for: "kept")
        }
        #expect(error.code == .outcomeUnknown || errno == .readOnlyFileSystem)
        // While the outcome is unknown, reads return the previous value.
        #expect(try storage.retrieve(for: "kept") == "old")
        disk.heal()
        let before = try disk.directory(0).attributes(of: SimulatedVault.name)?.identity
        let generation = try storage.store(token: "new", for: "kept")
        #expect(try disk.directory(0).attributes(of: SimulatedVault.name)?.identity != before)
        #expect(generation.rawValue > facts.values.map(\.generation).max() ?? 0)
        try storage.store(token: "more", for: "other")
        vault.close()
        let again = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        #expect(try again.verify().isClean)
        let found = again.storage(service: SimulatedVault.service)
        #expect(try found.retrieve(for: "kept") == "new")
        #expect(try found.retrieve(for: "other") == "more")
        #expect(disk.contents.directories[0].keys.sorted() == [SimulatedVault.name])
    }

    /// A flush fails, and what is to make up for it in part: whatever is left is a vault that opens.
    @Test(arguments: [DiskFault.Kind.create, .rename, .synchronizeDirectory])
    func aRepairThatFailsHalfWayDamagesNothing(_ kind: DiskFault.Kind) throws {
        var unknown = 0
        for skipping in 0..<8 {
            let (disk, vault, facts) = try open()
            disk.inject(DiskFault(kind: .synchronize, directory: 0, errno: .ioError))
            disk.inject(DiskFault(kind: .write, directory: 0, skipping: skipping, errno: .ioError))
            disk.inject(DiskFault(kind: kind, directory: 0, errno: .ioError))
            let storage = vault.storage(service: SimulatedVault.service)
            let new = String(repeating: "new", count: 1_000)
            var code: TokenStorageError.Code?
            do { try storage.store(token: new, for: "kept") } catch { code = error.code }
            disk.heal()
            if code == .outcomeUnknown { unknown += 1 }
            // The check covers any next handle, including one after the writer was killed.
            let again = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
            #expect(try again.verify().problems == [], "\(skipping)")
            let found = try again.storage(service: SimulatedVault.service).retrieve(for: "kept")
            #expect(found == new || (code != nil && found == "old"), "\(skipping)")
            if code != .outcomeUnknown, code != nil { #expect(try SimulatedVault.facts(of: again) == facts) }
            try again.storage(service: SimulatedVault.service).store(token: "later", for: "later")
            try storage.store(token: "newest", for: "kept")
            #expect(try storage.retrieve(for: "later") == "later")
            #expect(try again.storage(service: SimulatedVault.service).retrieve(for: "kept") == "newest")
            #expect(try again.verify().isClean)
        }
        #expect(unknown > 0)
    }

    /// Erasing a deleted value moves a small vault to a new file, whose name may not be durable. The same
    /// lock holder's later writes go to the new file as well, and not to the old one.
    @Test func nothingIsAcknowledgedThatWentToAFileOfBefore() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let rig = try GroupRig(vault)
        try rig.lead("first")
        rig.submit("deleting", [.delete("before")])
        let large = Secret([UInt8](repeating: 0x61, count: 400_000))
        rig.submit("large", [.store(large, for: "large")])
        // The fault hits the room for both values, behind the record of the first.
        disk.inject(DiskFault(kind: .write, directory: 0, skipping: 1, errno: .noSpace))
        disk.inject(DiskFault(kind: .synchronizeDirectory, directory: 0, errno: .ioError))
        rig.goOn()
        #expect(try rig.outcome("deleting").get() != nil)
        let outcome = rig.outcome("large")
        vault.close()
        let again = try SimulatedVault.open(at: SimulatedVault.location(on: disk)).storage(service: "group")
        #expect(try again.retrieve(for: "before") == nil)
        #expect(try again.secret(for: "large") == large)
        #expect(throws: Never.self) { try outcome.get() }
    }

    @Test func aFailingReadIsNeverAbsent() throws {
        let (disk, vault, _) = try open()
        disk.inject(DiskFault(kind: .read, directory: 0, times: .max, errno: .ioError))
        let storage = vault.storage(service: SimulatedVault.service)
        let error = try #require(throws: TokenStorageError.self) { try storage.retrieve(for: "kept") }
        #expect(error.code == .ioFailure)
        disk.heal()
        #expect(try storage.retrieve(for: "kept") == "old")
    }

    @Test(arguments: [
        (DiskFault.Kind.open, Errno.tooManyOpenFiles, TokenStorageError.Code.resourcesExhausted),
        (.open, .tooManyOpenFilesInSystem, .resourcesExhausted), (.open, .ioError, .ioFailure),
        (.read, .ioError, .ioFailure),
    ])
    func openingSaysWhatFailed(_ kind: DiskFault.Kind, _ errno: Errno, _ code: TokenStorageError.Code) throws
    {
        let (disk, vault, facts) = try open()
        vault.close()
        disk.inject(DiskFault(kind: kind, directory: 0, errno: errno))
        let error = try #require(throws: TokenStorageError.self) {
            try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        }
        #expect(error.code == code)
        try expectUnchanged(disk, facts)
    }

    /// A part of the file that cannot be read keeps no vault from being removed.
    @Test func aVaultThatCannotBeReadAsAWholeIsRemoved() throws {
        let (disk, vault, _) = try open()
        vault.close()
        disk.inject(DiskFault(kind: .read, directory: 0, errno: .ioError))
        let removal = VaultRemoval(
            location: SimulatedVault.location(on: disk),
            lockTimeout: SimulatedVault.configuration().lockLimit)
        _ = try removal.remove()
        #expect(disk.contents.directories[0][SimulatedVault.name] == nil)
    }

    /// Descriptors run out while compaction wants a new file.
    @Test(arguments: [
        DiskFault.Kind.create, .write, .synchronize, .rename, .synchronizeDirectory,
    ])
    func aFailingCompactionChangesNothing(_ kind: DiskFault.Kind) throws {
        let (disk, vault, facts) = try open()
        disk.inject(DiskFault(kind: kind, directory: 0, errno: .tooManyOpenFiles, bytesWritten: 5_000))
        let error = try #require(throws: TokenStorageError.self) { try vault.compact() }
        #expect(error.code == .resourcesExhausted)
        disk.heal()
        #expect(try SimulatedVault.facts(of: vault) == facts)
        vault.close()
        try expectUnchanged(disk, facts)
        #expect(disk.contents.directories[0].keys.sorted() == [SimulatedVault.name])
    }

    @Test func aReadOnlyDiskCanBeReadAndSaysSo() throws {
        let (disk, vault, facts) = try open()
        vault.close()
        for kind: DiskFault.Kind in [
            .create, .write, .synchronize, .resize, .rename, .remove, .synchronizeDirectory,
        ] {
            disk.inject(DiskFault(kind: kind, times: .max, errno: .readOnlyFileSystem))
        }
        let readOnly = SimulatedVault.location(
            ReadOnlyDirectory(disk.directory(0)), ReadOnlyDirectory(disk.directory(1)))
        let opened = try SimulatedVault.open(at: readOnly)
        #expect(try SimulatedVault.facts(of: opened) == facts)
        let storage = opened.storage(service: SimulatedVault.service)
        let error = try #require(throws: TokenStorageError.self) {
            try storage.store(token: "new", for: "kept")
        }
        #expect(error.code == .readOnly)
        #expect(try storage.retrieve(for: "kept") == "old")
        let deletion = try #require(throws: TokenStorageError.self) { try storage.delete(for: "kept") }
        #expect(deletion.code == .readOnly)
    }

    /// The anchor protects; that it cannot be written is no error.
    @Test(arguments: [DiskFault.Kind.write, .open, .create, .synchronize])
    func aStateDirectoryThatFailsDoesNotStopTheVault(_ kind: DiskFault.Kind) throws {
        let (disk, vault, _) = try open()
        disk.inject(DiskFault(kind: kind, directory: 1, times: .max, errno: .ioError))
        let storage = vault.storage(service: SimulatedVault.service)
        try storage.store(token: "new", for: "kept")
        #expect(try storage.retrieve(for: "kept") == "new")
    }
}

/// A directory of a file system that is mounted read-only: opening for writing fails.
final class ReadOnlyDirectory: ForwardingDirectory {
    let base: any DiskDirectory

    init(_ base: any DiskDirectory) { self.base = base }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        if access != .read { throw SystemFailure(.readOnlyFileSystem, "openat") }
        return try base.open(name, access)
    }
}
