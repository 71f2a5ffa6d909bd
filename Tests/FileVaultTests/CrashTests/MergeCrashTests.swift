import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// Crashes of merging: what is at the vault's path is the old vault or the merged one, whole, and opens on this device.
@Suite(.tags(.crash)) struct MergeCrashTests {
    /// The vault with what this device has stored, a copy with what another one has, and what both come to.
    /// With `isSuccessor`, the copy has all of the vault's commits, and takes its place as it is.
    private static func start(
        isSuccessor: Bool = false
    ) throws -> (DiskContents, vault: Facts, merged: Facts) {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let storage = vault.storage(service: SimulatedVault.service)
        for index in 0..<4 {
            try storage.store(token: VaultWorkload.text("old \(index)", 300), for: TokenKey("key \(index)"))
        }
        var other = SimulatedDisk(disk.contents)
        try storage.store(token: VaultWorkload.text("of this", 500), for: "key 0")
        if isSuccessor { other = SimulatedDisk(disk.contents) }
        let facts = try SimulatedVault.facts(of: vault)
        vault.close()

        let fork = try SimulatedVault.open(at: SimulatedVault.location(on: other))
        let forked = fork.storage(service: SimulatedVault.service)
        try forked.store(token: VaultWorkload.text("of the other", 500), for: "key 1")
        try forked.delete(for: "key 2")
        if isSuccessor { _ = try fork.compact() }
        fork.close()

        var contents = disk.contents
        contents.directories[0][RestoreCrashTests.copy] = other.contents.directories[0][SimulatedVault.name]
        let trial = SimulatedDisk(contents)
        let report = try merge(at: SimulatedVault.location(on: trial))
        #expect(report.taken == 1 && report.deleted == 1 && report.conflicts.isEmpty)
        let isCopy =
            trial.contents.directories[0][SimulatedVault.name]
            == contents.directories[0][RestoreCrashTests.copy]
        #expect(isCopy == isSuccessor)
        let after = try SimulatedVault.open(at: SimulatedVault.location(on: trial))
        defer { after.close() }
        return (contents, facts, try SimulatedVault.facts(of: after))
    }

    private static func merge(at location: VaultLocation) throws -> MergeReport {
        let ours = try RestoreCrashTests.opened(SimulatedVault.name, at: location)
        let theirs = try RestoreCrashTests.opened(RestoreCrashTests.copy, at: location)
        return try ours.merge(theirs)
    }

    private static func changes(from old: Facts, to new: Facts) -> [String: String?] {
        var changes: [String: String?] = [:]
        for key in Set(old.keys).union(new.keys) where old[key] != new[key] {
            changes.updateValue(new[key]?.value, forKey: key)
        }
        return changes
    }

    @Test(arguments: [false, true]) func everyCrashLeavesOneOfTheTwo(isSuccessor: Bool) async throws {
        let (start, vault, merged) = try Self.start(isSuccessor: isSuccessor)
        #expect(merged.count == 3 && merged["key 0"]?.value == vault["key 0"]?.value)
        let disk = SimulatedDisk(start)
        let history = History(disk: disk, initial: vault)
        let script = Script(disk: disk, history: history)
        history.perform("merge", Self.changes(from: vault, to: merged)) {
            _ = try Self.merge(at: script.location)
            return 0
        }
        try script.open().store("last", "at last")
        let report = await CrashRig(samples: 40, limit: 3_000).explore(
            history, from: start,
            subject: RestoreCrashTests.Subject(base: VaultSubject(), generations: merged))
        print("crash states of merging: \(report.states) of \(report.crashPoints) crash points")
        #expect(report.violations == [])
        #expect(report.states >= CrashRig.least(50))
    }

    /// A merging process is killed after each operation. Another process goes on with what is there then.
    @Test(.tags(.endurance), .from(.all), arguments: [false, true]) func whoIsKilledLeavesOneOfTheTwo(
        isSuccessor: Bool
    ) async throws {
        let (start, vault, merged) = try Self.start(isSuccessor: isSuccessor)
        var (life, isDead, states) = (0, true, 0)
        while isDead {
            let disk = SimulatedDisk(start)
            let mortal = MortalDisk(operations: life)
            let isNext = Monitor(false)
            let history = History(
                disk: disk, initial: vault, isKilled: { mortal.isDead && !isNext.withLock { $0 } })
            let location = SimulatedVault.location(
                mortal.directory(disk.directory(0)), mortal.directory(disk.directory(1)))
            history.perform("merge", Self.changes(from: vault, to: merged)) {
                _ = try Self.merge(at: location)
                return 0
            }
            isDead = mortal.isDead
            isNext.withLock { $0 = true }
            let position = disk.position
            let next = Script(disk: disk, history: history)
            try next.open().store("next", VaultWorkload.text("next", 500))
            try next.open().compact()
            try next.open().store("last", "at last")
            let report = await CrashRig(samples: 10, from: position).explore(
                history, from: start,
                subject: RestoreCrashTests.Subject(base: VaultSubject(), generations: merged))
            #expect(report.violations == [], "after \(life) operations")
            states += report.states
            life += 1
        }
        print("crash states after a killed merge: \(states) of \(life) lives")
        #expect(life > 12 && states > 500)
    }
}
