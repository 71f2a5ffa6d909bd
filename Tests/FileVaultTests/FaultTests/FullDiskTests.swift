import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// The disk is full: stores are refused before they harm anything, and deleting works.
@Suite struct FullDiskTests {
    /// Fills a vault whose disk has no block left; returns what is in it.
    private func fill(_ disk: SimulatedDisk, _ vault: BlockingFileVault) throws -> Int {
        let storage = vault.storage(service: SimulatedVault.service)
        disk.leaveFree(0)
        var count = 0
        while count < 1_000 {
            do {
                try storage.store(token: VaultWorkload.text("value \(count)", 3_000), for: "key \(count)")
                count += 1
            } catch {
                #expect(error.code == .noSpace)
                return count
            }
        }
        Issue.record("a full disk accepted every write")
        return count
    }

    @Test func aFullDiskRefusesStoresAndTakesDeletions() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let storage = vault.storage(service: SimulatedVault.service)
        let count = try fill(disk, vault)
        #expect(count > 5)
        let before = try SimulatedVault.facts(of: vault)
        #expect(before.count == count)

        // Deletes every item: the reserved room must be enough.
        for index in 0..<count {
            #expect(try storage.delete(for: TokenKey("key \(index)")))
            #expect(try storage.retrieve(for: TokenKey("key \(index)")) == nil)
        }
        vault.close()
        let again = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        #expect(try SimulatedVault.facts(of: again) == [:])
        #expect(try again.verify().isClean)
    }

    /// Others on the disk have use for the room that it would have taken.
    @Test func aBatchThatDoesNotFitTakesNothing() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let storage = vault.storage(service: SimulatedVault.service)
        try storage.store(token: "fake", for: "first")
        let before = try size(of: disk)
        disk.leaveFree(300_000)
        let changes = (0..<200).map {
            TokenChange.store(
                Secret(utf8: VaultWorkload.text("value \($0)", 3_000)), for: TokenKey("key \($0)"))
        }
        for _ in 0..<3 {
            let error = #expect(throws: TokenStorageError.self) { try storage.commit(changes) }
            #expect(error?.code == .noSpace)
            #expect(try size(of: disk) == before)
        }
        #expect(try vault.status().fileSize == before)
        // A commit that fits works as before.
        try storage.commit(Array(changes.prefix(60)))
        #expect(try storage.list().items.count == 61)
        #expect(try vault.verify().isClean)
    }

    /// A writer that knew of more room finds out, and keeps zeros ahead of the log again.
    @Test func roomThatAnotherWriterGaveBackIsMadeAnew() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let storage = vault.storage(service: SimulatedVault.service)
        try storage.store(token: "fake", for: "first")
        let content = disk.contents.directories[0][SimulatedVault.name] ?? []
        let end = (content.lastIndex { $0 != 0 } ?? 0) + 1
        let other = try SimulatedVault.location(on: disk).directory.open(SimulatedVault.name, .readWrite)
        try other.resize(to: end + VaultFormat.reserve + 64)
        try storage.store(token: VaultWorkload.text("second", 3_000), for: "second")
        #expect(try size(of: disk) >= end + 3_000 + VaultFormat.reserve)
        #expect(try vault.verify().isClean)
    }

    private func size(of disk: SimulatedDisk) throws -> Int {
        try #require(try disk.directory(0).attributes(of: SimulatedVault.name)).size
    }

    /// A crash while a full vault deletes.
    @Test func deletingOnAFullDiskSurvivesACrash() async throws {
        let first = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: first))
        _ = try fill(first, vault)
        let facts = try SimulatedVault.facts(of: vault)
        vault.close()

        let start = first.contents
        let disk = SimulatedDisk(start)
        disk.leaveFree(0)
        let history = History(disk: disk, initial: facts)
        let writer = try Script(disk: disk, history: history).open()
        writer.delete("key 1")
        writer.delete("key 3")
        let report = await CrashRig(samples: 8, limit: 400).explore(
            history, from: start, subject: VaultSubject())
        #expect(report.violations == [])
        #expect(report.states >= CrashRig.least(21))
    }

    @Test(arguments: [0, 4_096, 20_000, 100_000])
    func compactionOfAFullDiskIsPutOff(_ free: Int) throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let storage = vault.storage(service: SimulatedVault.service)
        for index in 0..<9 {
            try storage.store(token: VaultWorkload.text("value \(index)", 2_000), for: "key")
        }
        let facts = try SimulatedVault.facts(of: vault)
        disk.leaveFree(free)
        let error = try #require(throws: TokenStorageError.self) { try vault.compact() }
        #expect(error.code == .noSpace)
        #expect(try SimulatedVault.facts(of: vault) == facts)
        #expect(disk.contents.directories[0].keys.sorted() == [SimulatedVault.name])
        vault.close()
        let again = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        #expect(try SimulatedVault.facts(of: again) == facts)
    }
}
