import Testing
import TokenVault
import TokenVaultPlatform

/// A writer is killed after each of its operations, another goes on with what it sees, and then the power
/// fails: what the second was told must hold although the first never synced what the second saw.
@Suite struct VaultKilledWriterTests {
    static let workload = VaultWorkload(name: "killed writer") { _ in }

    /// What the first writer does until it dies.
    private static func work(_ writer: Writer) {
        writer.store("a", VaultWorkload.text("first", 900))
        writer.compact()
        writer.commit([("a", VaultWorkload.text("second", 300)), ("b", VaultWorkload.text("third", 300))])
        writer.delete("b")
    }

    @Test func whoeverComesNextIsSafe() async throws {
        let start = try SimulatedVault.fresh()
        var states = 0
        var violations: [String] = []
        var isDead = true
        var life = 0
        while isDead {
            let disk = SimulatedDisk(start)
            let mortal = MortalDisk(operations: life)
            // The next writer lives.
            let buried = Monitor(false)
            let history = History(disk: disk, isKilled: { mortal.isDead && !buried.withLock { $0 } })
            let location = SimulatedVault.location(
                mortal.directory(disk.directory(0)), mortal.directory(disk.directory(1)))
            if let vault = try? SimulatedVault.open(at: location) {
                Self.work(Writer(vault: vault, history: history))
                isDead = mortal.isDead
                buried.withLock { $0 = true }
                let next = disk.position
                let other = try Script(disk: disk, history: history).open()
                other.store("c", VaultWorkload.text("of the next", 600))
                let rig = CrashRig(samples: 4, from: next)
                let report = await rig.explore(history, from: start, subject: Self.workload.subject)
                states += report.states
                violations += report.violations.prefix(1).map { "killed after \(life) operations: \($0)" }
            }
            life += 1
        }
        print("killed writers: \(life) lives, \(states) crash states")
        #expect(violations == [])
        #expect(life > 20)
    }
}
