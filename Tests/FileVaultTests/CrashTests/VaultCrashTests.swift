import Testing
import TokenVault
import TokenVaultPlatform

/// Crash safety: every state that a crash of the scripted workloads can leave on the disk is a vault that
/// opens, holds all that was acknowledged and nothing else, and goes on.
@Suite struct VaultCrashTests {
    @Test func noCrashLosesAnything() async throws {
        var lines: [String] = []
        var states = 0
        for workload in VaultWorkload.all {
            let start = try workload.start()
            let history = try workload.history(from: start)
            let rig = CrashRig(samples: workload.samples, limit: workload.limit)
            let begin = ContinuousClock.now
            let report = await rig.explore(history, from: start, subject: workload.subject)
            states += report.states
            lines.append(
                "  \(workload.name): \(report.states) states at \(report.crashPoints) crash points, "
                    + "\(report.cases) cases, \(begin.duration(to: .now))")
            #expect(
                report.violationCount == 0,
                "\(workload.name): \(report.violations.joined(separator: "\n"))")
        }
        print("crash states explored:\n\(lines.joined(separator: "\n"))\n  in all: \(states)")
        #expect(states >= 10_000)
    }
}
