import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// Crashes of restoring, adopting and salvaging. The file at the vault's path is the old vault or the new
/// one, whole. It holds everything that was acknowledged.
@Suite(.tags(.crash)) struct RestoreCrashTests {
    /// A copy that lies beside the vault.
    static let copy = "copy.vault"
    private static let out = "out.vault"

    /// A vault with `count` items whose older copy, with other values, lies beside it; and what both hold.
    static func start(
        _ count: Int, tailBound: Int? = nil
    ) throws -> (DiskContents, vault: Facts, copy: Facts) {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk), tailBound: tailBound)
        let storage = vault.storage(service: SimulatedVault.service)
        for index in 0..<count {
            try storage.store(token: VaultWorkload.text("old \(index)", 300), for: TokenKey("key \(index)"))
        }
        let old = try SimulatedVault.facts(of: vault)
        let bytes = disk.contents.directories[0][SimulatedVault.name]
        try storage.store(token: VaultWorkload.text("new", 900), for: "key 0")
        try storage.commit([.store(Secret(utf8: "added"), for: "added"), .delete("key 1")])
        let new = try SimulatedVault.facts(of: vault)
        vault.close()
        var contents = disk.contents
        contents.directories[0][copy] = bytes
        return (contents, new, old)
    }

    static func opened(
        _ name: String, at location: VaultLocation, tailBound: Int? = nil
    ) throws -> VaultCopy {
        let copy = try VaultCopy.open(
            at: VaultLocation(
                directory: location.directory, name: name, state: location.state, path: "/simulated"),
            configuration: SimulatedVault.configuration(tailBound: tailBound))
        try copy.unlock(with: SimulatedVault.key("first"))
        return copy
    }

    /// What restoring changes, in the terms of a history.
    static func changes(from old: Facts, to new: Facts) -> [String: String?] {
        Dictionary(
            uniqueKeysWithValues: Set(old.keys).union(new.keys).map { ($0, new[$0]?.value) })
    }

    private struct Exploration: Sendable {
        var name: String
        var count: Int
        var tailBound: Int?
        /// Which file is put in the place.
        var source = RestoreCrashTests.copy
        /// Whether others write before and after.
        var hasWriters = false
        /// What is in the place is damaged there.
        var damage: Int?
        var samples = 40
        var limit = 3_500
    }

    private static let explorations = [
        Exploration(name: "restore", count: 4),
        Exploration(name: "restore among writers", count: 3, hasWriters: true),
        Exploration(name: "restore over damage", count: 3, damage: 17_000),
        Exploration(name: "restore with an index", count: 9, tailBound: 3),
        Exploration(name: "adopt", count: 4, source: SimulatedVault.name),
    ]

    /// Whatever is found has the values that are expected; generations of restored items are those of the copy.
    struct Subject: CrashSubject {
        var base: VaultSubject
        /// The generations that the copy's items have.
        var generations: Facts

        func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
            let fixed = expectations.map { expectation in
                var fixed = expectation
                fixed.allowed = expectation.allowed.map { facts in
                    facts.mapValues { fact in
                        generations.values.first { $0.value == fact.value && fact.generation == 0 } ?? fact
                    }
                }
                return fixed
            }
            return base.inspect(disk, expecting: fixed)
        }
    }

    @Test func everyCrashLeavesOneOfTheTwo() async throws {
        var states = 0
        var table = "crash states of restoring:\n"
        for exploration in Self.explorations {
            let report = try await Self.explore(exploration)
            table += "  \(exploration.name): \(report.states) states of \(report.crashPoints) crash points\n"
            #expect(report.violations == [], "\(exploration.name)")
            #expect(report.states >= 5, "\(exploration.name)")
            states += report.states
        }
        for hasNamelessFiles in [false, true] {
            let salvaged = try await Self.exploreSalvage(hasNamelessFiles)
            table += "  salvage: \(salvaged.states) states of \(salvaged.crashPoints) crash points\n"
            #expect(salvaged.violations == [])
            states += salvaged.states
        }
        for isAdopting in [false, true] {
            let what = isAdopting ? "adopt" : "restore"
            for (name, report) in [
                ("killed \(what)", try await Self.exploreKilled(isAdopting: isAdopting)),
                ("\(what) on a failing disk", try await Self.exploreFailing(isAdopting: isAdopting)),
            ] {
                table += "  \(name): \(report.states) states of \(report.crashPoints) crash points\n"
                #expect(report.violations == [], "\(name)")
                states += report.states
            }
        }
        print(table + "  in all: \(states)")
        #expect(states >= CrashRig.least(10_000))
    }

    private static func explore(_ exploration: Exploration) async throws -> CrashRig.Report {
        var (start, vault, copy) = try start(exploration.count, tailBound: exploration.tailBound)
        if let damage = exploration.damage {
            start.directories[0][SimulatedVault.name]?[damage] ^= 1
        }
        let isAdopting = exploration.source == SimulatedVault.name
        let disk = SimulatedDisk(start)
        let history = History(disk: disk, initial: vault)
        let script = Script(disk: disk, history: history, tailBound: exploration.tailBound)
        let other = exploration.hasWriters ? try script.open() : nil
        other?.store("before", VaultWorkload.text("before", 400))
        let source = try opened(exploration.source, at: script.location, tailBound: exploration.tailBound)
        var lost = vault
        lost["before"] = Fact(value: "", generation: 0)
        let values = isAdopting ? [:] : changes(from: lost, to: copy)
        history.perform("restore", values) {
            _ = isAdopting ? try source.adopt() : try source.restore(to: script.location)
            return 0
        }
        other?.store("after", VaultWorkload.text("after", 200))
        try script.open().store("last", "at last")
        let rig = CrashRig(samples: exploration.samples, limit: exploration.limit)
        if exploration.damage != nil {
            // Before the restore the vault is damaged, so crashes count only after it.
            let restored = history.calls.first { $0.name == "restore" }?.end ?? 0
            return await CrashRig(samples: exploration.samples, limit: exploration.limit, from: restored)
                .explore(
                    history, from: start,
                    subject: Subject(base: VaultSubject(tailBound: exploration.tailBound), generations: copy))
        }
        return await rig.explore(
            history, from: start,
            subject: Subject(base: VaultSubject(tailBound: exploration.tailBound), generations: copy))
    }

    /// The damaged vault is as it was, and the new file is not there or whole.
    private struct SalvageSubject: CrashSubject {
        var damaged: [UInt8]
        var saved: Facts

        func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
            do {
                var complaints: [String] = []
                let contents = disk.contents.directories[0]
                if contents[SimulatedVault.name] != damaged {
                    complaints.append("the damaged vault was changed")
                }
                let isDone = expectations.allSatisfy { $0.highest > 0 }
                guard contents[RestoreCrashTests.out] != nil else {
                    return complaints + (isDone ? ["what was saved is gone"] : [])
                }
                let location = VaultLocation(
                    directory: disk.directory(0), name: RestoreCrashTests.out, state: disk.directory(1),
                    path: "/simulated/out")
                try RestoreCrashTests.forgetWhatWasSeen(on: disk)
                let vault = try SimulatedVault.open(at: location)
                if try SimulatedVault.facts(of: vault) != saved { complaints.append("not all was saved") }
                if try !vault.verify().isClean { complaints.append("verify: not clean") }
                return complaints
            } catch {
                return ["\(error)"]
            }
        }
    }

    /// A file that lacks what was lost is opened by a device that has not seen the vault; others restore it on purpose.
    fileprivate static func forgetWhatWasSeen(on disk: SimulatedDisk) throws {
        let state = disk.directory(1)
        for name in try state.names() where name.hasSuffix(".anchor") { try state.remove(name) }
    }

    private static func exploreSalvage(_ hasNamelessFiles: Bool) async throws -> CrashRig.Report {
        var (start, _, _) = try start(6)
        start.directories[0][SimulatedVault.name]?[17_300] ^= 1
        let disk = SimulatedDisk(start, hasNamelessFiles: hasNamelessFiles)
        let history = History(disk: disk)
        let script = Script(disk: disk, history: history)
        let source = try opened(SimulatedVault.name, at: script.location)
        let location = VaultLocation(
            directory: disk.directory(0), name: out, state: nil, path: "/simulated/out")
        history.perform("salvage", [:]) {
            let report = try source.salvage(to: location)
            guard !report.isComplete, report.items > 0 else {
                throw SimulatedVault.Complaint("\(report)")
            }
            return 1
        }
        let place = SimulatedDisk(disk.contents)
        try forgetWhatWasSeen(on: place)
        let vault = try SimulatedVault.open(
            at: VaultLocation(
                directory: place.directory(0), name: out, state: place.directory(1), path: "/out")
        )
        let saved = try SimulatedVault.facts(of: vault)
        vault.close()
        return await CrashRig(samples: 200, limit: 1_500).explore(
            history, from: start,
            subject: SalvageSubject(
                damaged: start.directories[0][SimulatedVault.name] ?? [], saved: saved))
    }
}
