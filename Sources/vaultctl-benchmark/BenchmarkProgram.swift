import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// The benchmark program: arguments in, figures out, status back. `vaultctl benchmark` becomes this program,
/// so its error lines begin with `vaultctl`.
enum BenchmarkProgram {
    /// Runs the benchmark that `words` request; `nil` stands for arguments that are not UTF-8.
    static func run(_ words: [String]?) -> Int32 {
        if let words, words.count == 2, words[0] == ScratchKeeper.word {
            return ScratchKeeper.keep(in: FilePath(words[1]))
        }
        if words == [LimitProbe.echoWord] {
            SocketEcho.serve()
            return 0
        }
        guard let words, let arguments = BenchmarkArguments(words) else {
            return end(
                CommandFailure(
                    .usage, "vaultctl-benchmark was started by hand", "run \"vaultctl benchmark\""))
        }
        guard let program = ProgramContext.executable else {
            return end(CommandFailure(.unavailable, "this program was not found", "mount /proc"))
        }
        do throws(CommandFailure) {
            let leftovers = Leftovers()
            let results = try measure(arguments, program, leftovers)
            // The report comes first, because the reader of the figures may be gone.
            let report = Result { () throws(CommandFailure) in
                if let report = arguments.report { try write(Report(results).html, to: report) }
            }
            try print(results, arguments)
            try report.get()
            return leftovers.isEmpty ? 0 : 1
        } catch {
            return end(error)
        }
    }

    private static func end(_ failure: CommandFailure) -> Int32 {
        try? StandardStream.error.write(Array((failure.line + "\n").utf8))
        return failure.status.rawValue
    }

    /// Returns the figures. Everything made for the measurement is removed in any case; then a pending signal
    /// takes effect.
    private static func measure(
        _ arguments: BenchmarkArguments, _ program: FilePath, _ leftovers: Leftovers
    ) throws(CommandFailure) -> Results {
        let interruption = try SignalGuard { leftovers.tell() }
        let progress = ProgressLine()
        defer {
            progress.clear()
            leftovers.tell()
            interruption.end()
        }
        let keeper = try ScratchKeeper(in: arguments.directory, program)
        defer { keeper.end() }
        return try BenchmarkRun(
            arguments: arguments, scratch: keeper.path, program: program, interruption: interruption,
            leftovers: leftovers, progress: progress
        ).run()
    }

    private static func print(_ results: Results, _ arguments: BenchmarkArguments) throws(CommandFailure) {
        let stream = StandardStream.output
        let text: String
        if arguments.json {
            text = JSON.text(results)
        } else {
            let isTerminal = stream.isTerminal && ProgramContext.variable("TERM") != .text("dumb")
            let isPlain = ProgramContext.variable("NO_COLOR") != .absent
            text = Table(columns: stream.columns ?? 120, isStyled: isTerminal && !isPlain).text(results)
        }
        do throws(SystemFailure) {
            try stream.write(Array(text.utf8))
            try stream.finish()
        } catch { throw CommandFailure(error, "standard output", "check where it goes to") }
    }

    private static func write(_ html: String, to path: FilePath) throws(CommandFailure) {
        do throws(SystemFailure) {
            try SmallFile.create(path, Array(html.utf8))
        } catch {
            if error.errno == .fileExists {
                throw CommandFailure(.conflict, "the file already exists", "choose another name")
            }
            throw CommandFailure(error, "the report", "choose another path")
        }
    }
}
