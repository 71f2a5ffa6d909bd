import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

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
        Issue.record("a full disk took everything")
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

        // As often as there are items: the room kept for it must do.
        for index in 0..<count {
            #expect(try storage.delete(for: TokenKey("key \(index)")))
            #expect(try storage.retrieve(for: TokenKey("key \(index)")) == nil)
        }
        vault.close()
        let again = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        #expect(try SimulatedVault.facts(of: again) == [:])
        #expect(try again.verify().isClean)
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
        #expect(report.states > 20)
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
