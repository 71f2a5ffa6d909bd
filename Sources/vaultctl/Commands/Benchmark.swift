import ArgumentParser
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Benchmark: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure the latency of the backends.",
        discussion: """
            Stores, retrieves and deletes in a scratch vault beside the vault file, or in --directory, with \
            a key file and as many items as asked for already in it. Your own vault is not touched, and \
            nothing is left behind.

            Examples:
              vaultctl benchmark
              vaultctl benchmark --backend file --items 100000 --value-size 256
              vaultctl benchmark --json >latency.json
            """)

    @Option(
        help: ArgumentHelp(
            "The backend to measure: file, memory or secret-service, the desktop's keyring. May be given several times; file and memory by default.",
            valueName: "backend"),
        completion: .list(["file", "memory", "secret-service"]))
    var backend: [String] = []
    @Option(help: ArgumentHelp("Items in the storage; 1,000 by default.", valueName: "number"))
    var items: String?
    @Option(help: ArgumentHelp("Length of a secret; 1,024 by default.", valueName: "bytes"))
    var valueSize: String?
    @Option(help: ArgumentHelp("Calls of each kind; 1,000 by default.", valueName: "number"))
    var samples: String?
    @Option(
        help: ArgumentHelp("Where to make the scratch vault.", valueName: "path"), completion: .directory)
    var directory: String?
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let plan = BenchmarkPlan(
            items: try number(items, "--items", 0...10_000_000, 1_000),
            valueSize: try number(valueSize, "--value-size", 0...Secret.maximumLength, 1_024),
            samples: try number(samples, "--samples", 1...1_000_000, 1_000))
        var backends: [Backend] = []
        for name in backend.isEmpty ? ["memory", "file"] : backend {
            let backend = try Backend(option: name)
            if !backends.contains(backend) { backends.append(backend) }
        }
        var location = LocationArguments()
        location.backend = "file"
        let session = try Session(console, location)
        let directory = try Settings.path(directory, named: "--directory", environment: nil)
        var measurements: [Measurement] = []
        for backend in backends {
            switch backend {
            case .memory:
                let storage = InMemoryTokenStorage(service: "benchmark").blocking
                measurements += try plan.run("memory", storage, console) { false }
            case .file:
                let above =
                    if let directory { directory } else { try session.vaultPath.removingLastComponent() }
                measurements += try Self.measureFile(plan, above, console)
            case .secretService:
                measurements += try Self.measureKeyring(plan, session.keyring(), console)
            }
        }
        console.progress.clear()
        if format.json { writeJSON(measurements, console.output) } else { show(measurements, plan, console) }
        return .done
    }

    private func number(
        _ text: String?, _ name: String, _ range: ClosedRange<Int>, _ usual: Int
    ) throws(CommandFailure) -> Int {
        guard let text else { return usual }
        return try Settings.number(text, named: name, range)
    }

    /// Measures a vault in a scratch directory, which is gone afterwards, also when a signal comes.
    private static func measureFile(
        _ plan: BenchmarkPlan, _ above: FilePath, _ console: Console
    ) throws(CommandFailure) -> [Measurement] {
        let scratch: ScratchDirectory
        do { scratch = try ScratchDirectory(in: above.isEmpty ? "." : above) } catch {
            throw CommandFailure(error, "the scratch directory", "give another --directory")
        }
        return try measure(console, leaving: { scratch.remove() }) { (isInterrupted) throws(CommandFailure) in
            let configuration = FileVaultConfiguration(stateDirectory: scratch.path.appending("state"))
            let vault = try calling { () throws(TokenStorageError) in
                try BlockingFileVault.create(
                    at: scratch.path.appending("benchmark.vault"),
                    unlockMethod: .keyFile(Secret(BenchmarkPlan.bytes(32))), configuration: configuration)
            }
            defer { vault.close() }
            return try plan.run("file", vault.storage(service: "benchmark"), console, isInterrupted)
        }
    }

    /// Measures the person's keyring, in a service of its own whose items are gone afterwards, also when a
    /// signal comes.
    private static func measureKeyring(
        _ plan: BenchmarkPlan, _ keyring: SecretService, _ console: Console
    ) throws(CommandFailure) -> [Measurement] {
        let mark = String(UInt64.random(in: 0...UInt64.max), radix: 36)
        let storage = keyring.storage(service: "vaultctl benchmark \(mark)").blocking
        let clear = { _ = try? storage.deleteAll() }
        return try measure(console, leaving: clear) { (isInterrupted) throws(CommandFailure) in
            try plan.run(Backend.secretService.rawValue, storage, console, isInterrupted)
        }
    }

    /// Measures, and leaves nothing behind, also when a signal comes.
    private static func measure(
        _ console: Console, leaving clear: () -> Void,
        _ body: (() -> Bool) throws(CommandFailure) -> [Measurement]
    ) throws(CommandFailure) -> [Measurement] {
        let signals: SignalForwarder
        do { signals = try SignalForwarder(SignalForwarder.ending) } catch {
            clear()
            throw CommandFailure(error, "the signals", "try again")
        }
        var caught: CInt?
        func isInterrupted() -> Bool {
            if caught == nil { caught = signals.next() }
            return caught != nil
        }
        defer {
            clear()
            console.progress.clear()
            if let caught { signals.deliver(caught) } else { signals.stop() }
        }
        return try body(isInterrupted)
    }

    private func writeJSON(_ measurements: [Measurement], _ output: Output) {
        var json = JSONWriter(output)
        json.array { json in
            for measurement in measurements {
                json.object { json in
                    json.member("backend", measurement.backend)
                    json.member("operation", measurement.operation)
                    json.member("items", measurement.items)
                    json.member("valueSize", measurement.valueSize)
                    json.member("count", measurement.count)
                    json.member("p50", tenths: measurement.percentile(0.5))
                    json.member("p90", tenths: measurement.percentile(0.9))
                    json.member("p99", tenths: measurement.percentile(0.99))
                    json.member("p999", tenths: measurement.percentile(0.999))
                    json.member("max", tenths: measurement.percentile(1))
                    json.member("perSecond", Int(measurement.perSecond))
                }
            }
        }
        json.end()
    }

    private func show(_ measurements: [Measurement], _ plan: BenchmarkPlan, _ console: Console) {
        let output = console.output
        output.line("\(plan.items) items, secrets of \(plan.valueSize) bytes; latencies in microseconds")
        output.line(Measurement.header)
        for measurement in measurements { output.line(measurement.row) }
    }
}
