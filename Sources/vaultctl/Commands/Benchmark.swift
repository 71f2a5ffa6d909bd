import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// Checks the arguments and becomes the program that measures, so that `vaultctl` stays small and quick to
/// start.
struct Benchmark: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Measure the latency of the backends on this machine.",
            description: """
                The command stores, retrieves and deletes items in storages of its own: in memory, in a vault, and through an \
                agent. All of them are in a scratch directory, which the command removes at its end. Your own vaults and \
                agents are not touched. Your keyring is not touched either, unless you name it.

                With --backend secret-service, the command writes to your keyring, in a service of its own, and deletes the \
                items afterwards. If items are left, standard error names the service. SIGKILL leaves these items, and SIGKILL \
                of all processes leaves the scratch directory and the agent.

                For comparison, the command also measures the machine: a write to the disk (fdatasync), a decryption (AEAD) \
                and the answer of another process (echo). Latencies are in microseconds. Calls run one after the other, and \
                the backends take turns. A vault of up to 1 MiB is rewritten when an item is deleted, which takes longer than a \
                deletion in a large vault.

                With --json, each object of the output has backend, operation, items, valueSize, count, p50, p90, p99, p999, max and \
                perSecond. If the machine sets a limit, the object also has its name (limit) and median (limitP50).
                """,
            examples: [
                "vaultctl benchmark",
                "vaultctl benchmark --report latency.html",
                """
                vaultctl benchmark --backend file --items 1000 --items 100000 \\
                  --value-size 256 --json >latency.json
                """,
                """
                vaultctl benchmark --backend file --backend secret-service --items 100 \\
                  --items 10000 --keyring-items 1000
                """,
            ],
            statuses: [
                .failure: "Items are left in the keyring, a signal came, or another failure.",
                .locked: "The keyring is locked.",
                .unavailable:
                    "The program that measures, the agent's program or the keyring is not available.",
                .conflict: "The file of --report exists already.",
                .timedOut: "The keyring did not answer in time.",
            ],
            standard: .plain))

    @Option(
        help: ArgumentHelp(
            "The backend to measure: file, agent, memory or secret-service (the desktop's keyring). May be given several times; by default all but the keyring.",
            valueName: "backend"),
        completion: .list(Self.backends))
    var backend: [String] = []
    @Option(
        help: ArgumentHelp(
            "The number of items in the storage. May be given several times; by default 100, 1,000 and 10,000.",
            valueName: "number"))
    var items: [String] = []
    @Option(
        help: ArgumentHelp(
            "The largest number of items for the keyring, which writes all items with each store; by default 1,000, or no limit with --items.",
            valueName: "number"))
    var keyringItems: String?
    @Option(
        help: ArgumentHelp(
            "The length of a secret. May be given several times; by default 1,024.", valueName: "bytes"))
    var valueSize: [String] = []
    @Option(
        help: ArgumentHelp(
            "The time to measure, without the time to fill the storages; by default 20.",
            valueName: "seconds"))
    var seconds: String?
    @Option(
        help: ArgumentHelp(
            "The largest number of calls of each kind; by default as many as the time permits.",
            valueName: "number"))
    var samples: String?
    @Option(
        help: ArgumentHelp(
            "Where to make the scratch directory; by default beside the vault file.", valueName: "path"),
        completion: .directory)
    var directory: String?
    @Option(
        help: ArgumentHelp(
            "Also write a page with curves for a browser, which loads and runs nothing. An existing file is not overwritten.",
            valueName: "file"),
        completion: .file(extensions: ["html"]))
    var report: String?
    @OptionGroup var format: OutputOptions

    private static let backends = ["file", "agent", "memory", "secret-service"]

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        var words: [String] = []
        for name in unique(backend) {
            guard Self.backends.contains(name) else {
                throw .usage("there is no such backend", "use file, agent, memory or secret-service")
            }
            words += ["--backend", name]
        }
        for number in try numbers(items, "--items", 1...10_000_000) { words += ["--items", String(number)] }
        if let keyringItems {
            let most = try Settings.number(keyringItems, named: "--keyring-items", 1...10_000_000)
            words += ["--keyring-items", String(most)]
        }
        let sizes = try numbers(valueSize, "--value-size", 0...Secret.maximumLength)
        for number in sizes.isEmpty ? [1_024] : sizes { words += ["--value-size", String(number)] }
        words += ["--milliseconds", String(try milliseconds())]
        if let samples {
            words += [
                "--samples", String(try Settings.number(samples, named: "--samples", 1...1_000_000_000)),
            ]
        }
        words += ["--directory", try scratchPlace(console).string]
        words += ["--version-of-vaultctl", String(VaultControl.version.split(separator: " ").last ?? "")]
        if format.json { words.append("--json") }
        if let path = try Settings.path(report, named: "--report", environment: nil) {
            try OutputPlace.requireFree(path)
            words += ["--report", ProgramContext.absolute(path).string]
        }
        if let agent = try agentProgram() { words += ["--agent", agent.string] }
        let program = try InstalledProgram.benchmark.path(
            orElse:
                "install vaultctl-benchmark beside vaultctl: \"make release\" builds it there, \"make install\" installs both"
        )
        do throws(SystemFailure) {
            try ProgramContext.become(program, words)
        } catch {
            throw CommandFailure(error, "the program that measures", "check how it is installed")
        }
    }

    private func unique(_ values: [String]) -> [String] {
        values.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private func numbers(
        _ texts: [String], _ name: String, _ range: ClosedRange<Int>
    ) throws(CommandFailure) -> [Int] {
        var numbers: [Int] = []
        for text in texts {
            let number = try Settings.number(text, named: name, range)
            if !numbers.contains(number) { numbers.append(number) }
        }
        return numbers
    }

    private func milliseconds() throws(CommandFailure) -> Int {
        guard let seconds else { return 20_000 }
        guard let number = Double(seconds), number > 0, number <= 86_400 else {
            throw .usage("--seconds is not a number of seconds", "give a number above 0, such as 10 or 0.5")
        }
        return max(1, Int(number * 1_000))
    }

    /// Returns the directory for the scratch directory: by default that of the vault, whose disk matters.
    private func scratchPlace(_ console: Console) throws(CommandFailure) -> FilePath {
        if let path = try Settings.path(directory, named: "--directory", environment: nil) {
            return ProgramContext.absolute(path)
        }
        var location = LocationArguments()
        location.backend = "file"
        return ProgramContext.absolute(try Session(console, location).vaultPath).parent
    }

    /// Returns the agent's program. Throws only when the user named the agent and the program is missing.
    private func agentProgram() throws(CommandFailure) -> FilePath? {
        if backend.contains("agent") { return try AgentStarter.program() }
        return backend.isEmpty ? try? AgentStarter.program() : nil
    }
}
