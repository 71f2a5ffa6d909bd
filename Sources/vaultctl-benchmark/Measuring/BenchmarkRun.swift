import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// The whole measurement. For each length of secrets, the run creates the backends. For each number of items,
/// the run fills and measures the backends.
///
/// The backends take turns, so that other work on the machine affects all of them.
struct BenchmarkRun {
    let arguments: BenchmarkArguments
    let scratch: FilePath
    let program: FilePath
    let interruption: SignalGuard
    let leftovers: Leftovers
    let progress: ProgressLine

    /// Runs the measurement. Returns the figures, the backends that were left out with reasons, and facts
    /// about the machine.
    func run() throws(CommandFailure) -> Results {
        var results = Results()
        results.facts = MachineFact.all(of: scratch, version: arguments.version)
        let names = backends(&results)
        if names.contains(BackendName.agent), let agent = arguments.agent {
            progress.show("Starting an agent …")
            try PrivateAgent.start(agent, in: scratch)
        }
        for (number, valueSize) in arguments.valueSizes.enumerated() {
            try measure(names, valueSize, label: String(number), &results)
        }
        return results
    }

    private func backends(_ results: inout Results) -> [String] {
        if !arguments.backends.isEmpty { return arguments.backends }
        var names = [BackendName.memory, BackendName.file]
        if arguments.agent != nil {
            names.append(BackendName.agent)
        } else {
            results.leftOut.append((BackendName.agent, "vaultctl-agent is not installed beside vaultctl"))
        }
        results.leftOut.append(
            (BackendName.keyring, "it would write to your own keyring; select it with --backend"))
        return names
    }

    private func measure(
        _ names: [String], _ valueSize: Int, label: String, _ results: inout Results
    ) throws(CommandFailure) {
        var subjects: [Subject] = []
        defer {
            for subject in subjects {
                subject.end { progress.show("Deleting what was stored in \(subject.name)", share: $0) }
            }
        }
        for name in names {
            switch name {
            case BackendName.memory: subjects.append(.memory())
            case BackendName.file: subjects.append(try .file(in: scratch, label))
            case BackendName.agent:
                subjects.append(
                    try .agent(in: scratch, label, at: PrivateAgent.place(in: scratch)))
            default: subjects.append(.keyring(atMost: arguments.mostItemsOfKeyring, leftovers))
            }
        }
        let secret = Secret(randomBytes(valueSize))
        let probes = [
            try LimitProbe.sync(of: try storedBytes(secret, label), in: scratch, label),
            try LimitProbe.opening(of: valueSize),
            try LimitProbe.echo(of: valueSize, program),
        ]
        let sizes = arguments.items.isEmpty ? BenchmarkArguments.usualItems : arguments.items.sorted()
        let time = arguments.time / (sizes.count * arguments.valueSizes.count)
        for items in sizes {
            let present = subjects.filter { items <= $0.limit }
            for subject in present { try fill(subject, with: secret, to: items) }
            let turns = InterleavedMeasurement(
                subjects: present, probes: probes, secret: secret, time: time, samples: arguments.samples,
                interruption: interruption)
            let what = "Measuring \(grouped(items)) items of \(grouped(valueSize)) bytes"
            results.measurements += try turns.run { progress.show(what, share: $0) }
        }
        for probe in probes {
            results.limits.append(
                MachineLimit(
                    kind: probe.kind, bytes: probe.bytes, valueSize: valueSize, latencies: probe.latencies))
        }
    }

    /// Returns the number of bytes that a store of `secret` writes to the disk.
    private func storedBytes(_ secret: Secret, _ label: String) throws(CommandFailure) -> Int {
        let subject = try Subject.file(in: scratch, "probe-\(label)")
        defer { subject.end() }
        let written = try WrittenBytes.least { (index) throws(CommandFailure) in
            try calling(subject.name) { () throws(TokenStorageError) in
                _ = try subject.storage.store(secret, for: InterleavedMeasurement.key("sample", index))
            }
        }
        // 464 bytes surround a secret of 1 KiB.
        return written ?? secret.count + 464
    }

    private func fill(
        _ subject: Subject, with secret: Secret, to items: Int
    ) throws(CommandFailure) {
        let start = subject.items
        let batch = max(1, min(subject.batch, (1 << 20) / max(secret.count, 1)))
        while subject.items < items {
            try interruption.check()
            progress.show(
                "Filling \(subject.name) with \(grouped(items)) items",
                share: Double(subject.items - start) / Double(items - start))
            let next = min(items, subject.items + batch)
            let changes = (subject.items..<next).map {
                TokenChange.store(secret, for: InterleavedMeasurement.key("item", $0))
            }
            if subject.items == 0 { subject.begin(false) }
            try calling(subject.name) { () throws(TokenStorageError) in
                do throws(TokenStorageError) { _ = try subject.storage.commit(changes) } catch {
                    // After these errors, the first commit stored nothing: the backend is missing or rejects
                    // items.
                    let refusals: [TokenStorageError.Code] = [.unavailable, .locked, .notPermitted]
                    if subject.items == 0, refusals.contains(error.code) { subject.begin(true) }
                    throw error
                }
            }
            subject.items = next
        }
    }
}
