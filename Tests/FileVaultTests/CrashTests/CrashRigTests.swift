import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

/// The rig itself: it finds nothing wrong with a log that is right, and something with each that is not.
@Suite(.tags(.crash)) struct CrashRigTests {
    private func start() throws -> DiskContents {
        let disk = SimulatedDisk()
        try ToyLog.create(disk.directory(0), disk.directory(1))
        return disk.contents
    }

    private func run(from start: DiskContents, lie: Lie?) throws -> History {
        let disk = SimulatedDisk(start)
        let history = History(disk: disk)
        // Both directories share one lying disk, because the lie concerns the order between them.
        let liar = lie.map { LyingDisk($0) }
        let vault = liar?.directory(disk.directory(0)) ?? disk.directory(0)
        let state = liar?.directory(disk.directory(1)) ?? disk.directory(1)
        let first = try ToyLog(vault, state)
        let second = try ToyLog(disk.directory(0), disk.directory(1))
        func store(_ log: ToyLog, _ key: String, _ value: String?) {
            history.perform("store \(key)", [key: value]) { try log.store(key, value) }
        }
        let long = String(repeating: "long", count: 400)
        store(first, "a", "1")
        store(first, "b", long)
        store(second, "a", "2")
        history.perform("compact", [:]) {
            try second.compact()
            return nil
        }
        store(first, "c", "3")
        store(second, "d", long)
        store(first, "a", nil)
        history.perform("compact", [:]) {
            try first.compact()
            return nil
        }
        store(first, "e", "5")
        if lie == .failedSyncRetried {
            disk.inject(DiskFault(kind: .synchronize, directory: 0, errno: .ioError))
        }
        store(first, "f", "6")
        store(first, "g", "7")
        return history
    }

    @Test func aRightLogHasNoViolation() async throws {
        let start = try start()
        let history = try run(from: start, lie: nil)
        let report = await CrashRig(isWhole: true).explore(history, from: start, subject: ToySubject())
        #expect(report.violations == [])
        #expect(report.states > 250)
        #expect(history.calls.count == 11)
    }

    @Test(arguments: Lie.allCases)
    func everyLieIsCaught(_ lie: Lie) async throws {
        let start = try start()
        let history = try run(from: start, lie: lie)
        let report = await CrashRig(isWhole: true, stopsAtFirst: true).explore(
            history, from: start, subject: ToySubject())
        // No call of the workload failed: only a crash shows the lie.
        #expect(history.complaints == [])
        #expect(report.violationCount > 0)
        if lie == .anchorBeforeLog {
            #expect(report.violations.contains { $0.contains("rolled back") })
        }
    }
}
