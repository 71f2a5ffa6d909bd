import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// Crash safety in every state that a crash can leave on the disk. The vault opens, and holds all that was
/// acknowledged and nothing else. It verifies, and goes on.
@Suite(.tags(.crash)) struct VaultCrashTests {
    /// What one exploration found.
    struct Line: Sendable {
        var name: String
        var states = 0
        var cases = 0
        var crashPoints = 0
        var violations: [String] = []

        mutating func add(_ report: CrashRig.Report) {
            states += report.states
            cases += report.cases
            crashPoints += report.crashPoints
            violations += report.violations
        }
    }

    @Test func noCrashLosesAnything() async throws {
        var explorations: [@Sendable () async throws -> Line] = VaultWorkload.all.map { workload in
            { try await Self.crashes(of: workload) }
        }
        explorations.append { try await Self.crashesAfterAKilledWriter() }
        explorations += VaultWorkload.recovered.map { workload in
            { try await Self.crashesOfRecovery(after: workload) }
        }
        let lines = try await Self.run(explorations, atOnce: 2)

        var table = "crash states explored:\n"
        for line in lines {
            table +=
                "  \(line.name): \(line.states) states of \(line.crashPoints) crash points (\(line.cases) cases)\n"
            #expect(line.states > 0, "\(line.name)")
            #expect(
                line.violations.isEmpty, "\(line.name): \(line.violations.prefix(6).joined(separator: "\n"))")
        }
        let states = lines.reduce(0) { $0 + $1.states }
        print(table + "  in all: \(states)")
        #expect(states >= CrashRig.least(10_000))
    }

    /// Runs all of `explorations`, some at once; their lines in order.
    private static func run(
        _ explorations: [@Sendable () async throws -> Line], atOnce: Int
    ) async throws -> [Line] {
        try await withThrowingTaskGroup(of: (Int, Line).self) { group in
            var lines: [Int: Line] = [:]
            for (number, exploration) in explorations.enumerated() {
                if number >= atOnce, let (done, line) = try await group.next() { lines[done] = line }
                group.addTask { (number, try await exploration()) }
            }
            for try await (done, line) in group { lines[done] = line }
            return lines.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    /// Every crash of a scripted workload.
    private static func crashes(of workload: VaultWorkload) async throws -> Line {
        let start = try workload.start()
        let history = try workload.history(from: start)
        let rig = CrashRig(samples: workload.samples, limit: workload.limit, workers: 1)
        var line = Line(name: workload.name)
        line.add(await rig.explore(history, from: start, subject: workload.subject))
        return line
    }

    /// Kills a writer after each of its operations. Another writer goes on with what it sees, and then the
    /// power fails. What the second writer acknowledged must hold, although the first never synced what the
    /// second saw.
    private static func crashesAfterAKilledWriter() async throws -> Line {
        var line = Line(name: "killed writer")
        let start = try SimulatedVault.fresh()
        var isDead = true
        var life = 0
        while isDead {
            let disk = SimulatedDisk(start)
            let mortal = MortalDisk(operations: life)
            // The next writer is not killed.
            let isNext = Monitor(false)
            let history = History(
                disk: disk, isKilled: { mortal.isDead && !isNext.withLock { $0 } })
            let location = SimulatedVault.location(
                mortal.directory(disk.directory(0)), mortal.directory(disk.directory(1)))
            if let vault = try? SimulatedVault.open(at: location) {
                let first = Writer(vault: vault, history: history)
                first.store("a", VaultWorkload.text("first", 900))
                first.compact()
                first.commit([
                    ("a", VaultWorkload.text("second", 300)), ("b", VaultWorkload.text("third", 300)),
                ])
                first.delete("b")
                isDead = mortal.isDead
                isNext.withLock { $0 = true }
                let position = disk.position
                try Script(disk: disk, history: history).open().store(
                    "c", VaultWorkload.text("of the next", 600))
                let rig = CrashRig(samples: 4, workers: 1, from: position)
                line.add(await rig.explore(history, from: start, subject: VaultSubject()))
            }
            life += 1
        }
        #expect(life > 20)
        return line
    }

    /// Crashes during the work after a crash: opening, repairing, writing and compacting the remainder.
    private static func crashesOfRecovery(after workload: VaultWorkload) async throws -> Line {
        var line = Line(name: "recovery after \(workload.name)")
        let start = try workload.start()
        let history = try workload.history(from: start)
        let states = CrashStates(of: history, from: start, samples: 8, limit: 25, seed: 2)
        for state in 0..<states.count {
            let crashed = states.contents(of: state)
            // The state may hold these values, as the crashes of the workload itself have shown. Leaves slot
            // changes out: without an acknowledged result, the method that opens first decides whether they
            // happened.
            let vault = try SimulatedVault.open(at: SimulatedVault.location(on: SimulatedDisk(crashed)))
            let initial = try SimulatedVault.facts(of: vault)
            vault.close()

            let disk = SimulatedDisk(crashed)
            let next = History(disk: disk, initial: initial)
            let writer = try Script(disk: disk, history: next, tailBound: workload.tailBound).open()
            writer.store("recovered", VaultWorkload.text("recovered", 700))
            writer.compact()
            writer.store("recovered", "again")
            let rig = CrashRig(samples: 4, limit: 24, workers: 1, seed: 3)
            var report = await rig.explore(
                next, from: crashed, subject: VaultSubject(tailBound: workload.tailBound))
            report.violations = report.violations.map { "after \(states.description(of: state)): \($0)" }
            line.add(report)
        }
        return line
    }
}
