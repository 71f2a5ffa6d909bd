import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// The rig again, with the vault on lying disks. The states that it explores distinguish a vault that forgets
/// a step from a correct one.
@Suite(.tags(.crash)) struct VaultLyingDiskTests {
    /// A little of everything that a lie could spoil.
    static let workload = VaultWorkload(name: "under a liar", samples: 4) { script in
        let first = try script.open()
        // The second writer's disk does not lie. That writer replaces the file while the first writer has it
        // open.
        let second = try Script(disk: script.disk, history: script.history).open()
        first.store("a", VaultWorkload.text("first", 700))
        first.store("b", VaultWorkload.text("second", 700))
        second.compact()
        second.store("c", "third")
        first.store("d", "fourth")
        first.compact()
        second.store("e", "fifth")
        first.store("f", "sixth")
        if script.liar?.lie == .failedSyncRetried {
            script.fail(.synchronize, .ioError)
            first.store("g", VaultWorkload.text("seventh", 700))
            first.store("h", "eighth")
        }
    }

    @Test func theTruthHasNoViolation() async throws {
        let start = try Self.workload.start()
        let history = try Self.workload.history(from: start)
        let report = await CrashRig(samples: 4, limit: 300, isWhole: true).explore(
            history, from: start, subject: Self.workload.subject)
        #expect(report.violations == [])
    }

    @Test(arguments: Lie.allCases)
    func everyLieIsCaught(_ lie: Lie) async throws {
        let start = try Self.workload.start()
        let history = try Self.workload.history(from: start, lie: lie)
        if lie == .lockOnOldFile {
            // The anchor names the other file, so the old file acknowledges nothing more.
            #expect(!history.complaints.isEmpty)
            for complaint in history.complaints {
                #expect(complaint.contains("another file has become the vault"))
            }
            return
        }
        // No call failed: only a crash, or opening again, shows the lie.
        #expect(history.complaints == [])
        let report = await CrashRig(samples: 4, isWhole: true, stopsAtFirst: true).explore(
            history, from: start, subject: Self.workload.subject)
        #expect(report.violationCount > 0)
        print("\(lie.rawValue): \(report.violations.first ?? "nothing")")
    }
}
