import TestLanes
import TokenVaultPlatform

/// What is put on a disk that crashed, and what must be true of it then.
protocol CrashSubject: Sendable {
    /// Opens what is on `disk`, reads all of it, writes once more; says what is wrong, one line each. The
    /// same state can come of several crashes: all of `expectations` must be met.
    func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String]
}

/// Explores the crashes of a workload that ran.
struct CrashRig: Sendable {
    /// What was found.
    struct Report: Sendable {
        var states = 0
        /// States and crash points: a state that several crashes leave is held against each.
        var cases = 0
        var crashPoints = 0
        /// The first violations, with how to come back to them.
        var violations: [String] = []
        var violationCount = 0
    }

    /// Random mixtures tried at each crash point.
    var samples = 12
    /// At most this many states; the others are left out evenly.
    var limit = Int.max
    /// At most as many in a run that does not cover ``TestLane/all``.
    static let sampled = 20
    /// Whether each run explores all.
    var isWhole = false
    /// The number of violations that the report lists in full.
    var told = 5
    /// How many inspections run at once.
    var workers = 2
    /// Stops at the first violation: enough to know that the subject is faulty.
    var stopsAtFirst = false
    var seed: UInt64 = 1
    /// Only crashes at or after this operation.
    var from = 0

    /// Explores every crash of `history`, whose disk began with `start`.
    func explore(_ history: History, from start: DiskContents, subject: some CrashSubject) async -> Report {
        var report = Report()
        for complaint in history.complaints { report.add("in the workload: \(complaint)", told: told) }
        let limit = isWhole || TestLane.all.isCovered ? limit : min(limit, Self.sampled)
        let states = CrashStates(
            of: history, from: start, first: from, samples: samples, limit: limit, seed: seed)
        report.states = states.count
        report.cases = states.cases
        report.crashPoints = states.crashPoints

        let queue = Monitor((next: 0, report: report))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<workers {
                group.addTask {
                    while true {
                        let state: Int? = queue.withLock { queue in
                            if queue.next == states.count { return nil }
                            if stopsAtFirst, queue.report.violationCount > 0 { return nil }
                            defer { queue.next += 1 }
                            return queue.next
                        }
                        guard let state else { return }
                        let problems = subject.inspect(
                            SimulatedDisk(states.contents(of: state)),
                            expecting: states.expectations(of: state))
                        queue.withLock { queue in
                            for problem in problems {
                                queue.report.add("\(states.description(of: state)): \(problem)", told: told)
                            }
                        }
                    }
                }
            }
        }
        return queue.withLock { $0.report }
    }
}

extension CrashRig {
    /// The least number of states that a run has to find where all have `states`.
    static func least(_ states: Int) -> Int { TestLane.all.isCovered ? states : min(states, sampled / 4) }
}

extension CrashRig.Report {
    mutating func add(_ violation: String, told: Int) {
        violationCount += 1
        if violations.count < told { violations.append(violation) }
    }
}

extension CrashChoice {
    /// What was chosen, in one line.
    var summary: String {
        func text(_ position: Int) -> String { position == .max ? "all" : "\(position)" }
        func text(_ file: File) -> String {
            let sectors = file.sectors.sorted { $0.key < $1.key }.prefix(8)
                .map { "\($0.key):\(text($0.value))" }.joined(separator: " ")
            return "size \(text(file.size)) data \(text(file.data))"
                + (sectors.isEmpty ? "" : " sectors [\(sectors)]") + (file.keepsLost ? " lost kept" : "")
        }
        let named = files.sorted { $0.key < $1.key }.map { "inode \($0.key) \(text($0.value))" }
        return (named + ["others \(text(otherFiles))", "entries \(entries)"]).joined(separator: ", ")
    }
}
