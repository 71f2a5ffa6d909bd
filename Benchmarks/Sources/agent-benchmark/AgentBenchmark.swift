import Glibc
import Measuring
import SystemPackage
import TokenVault
import VaultAgent

/// What a retrieve through the agent costs, against a bare echo of as many bytes over a Unix socket, each with the other
/// end in a process of its own.
///
/// `agent-benchmark DIRECTORY VAULTCTL-AGENT`; the program starts itself for the echo. DIRECTORY has a short path: those of
/// sockets have a limit.
@main enum AgentBenchmark {
    static let rounds = 2_500
    /// How many calls of one kind follow each other, of which the second half counts.
    static let calls = 16
    static let items = 100

    static func main() async throws {
        let arguments = CommandLine.arguments
        if Echo.servesHere() { return }
        guard arguments.count == 3 else {
            print("usage: agent-benchmark DIRECTORY VAULTCTL-AGENT")
            exit(64)
        }
        try await withTemporaryDirectory(in: arguments[1]) { try await run(in: FilePath($0)) }
    }

    private static func run(in directory: FilePath) async throws {
        let place = AgentEndpoint(directory: directory.appending("run"))
        let agent = try start(CommandLine.arguments[2], ["--directory", place.directory.string])
        defer {
            kill(agent, SIGTERM)
            waitpid(agent, nil, 0)
        }

        let path = directory.appending("benchmark.vault")
        let state = directory.appending("state")
        let key = UnlockMethod.keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))
        let configuration = FileVaultConfiguration(stateDirectory: state)
        try BlockingFileVault.create(at: path, unlockMethod: key, configuration: configuration).close()
        let vault = BlockingAgentVault(at: path, agent: place)
        while (try? vault.unlock(with: key, stateDirectory: state)) == nil {
            guard waitpid(agent, nil, WNOHANG) == 0 else { throw Errno.noSuchProcess }
            sched_yield()
        }
        let direct = try BlockingFileVault.open(at: path, configuration: configuration)
        try direct.unlock(with: key)

        for size in [64, 1_024] {
            let secret = Secret(repeatElement(UInt8(0x61), count: size))
            let names = (0..<items).map { TokenKey("token-\($0) of \(size)") }
            let storage = vault.storage(service: "benchmark")
            _ = try storage.commit(names.map { .store(secret, for: $0) })
            let (echo, lookingEcho) = (try Echo(.sleeping), try Echo(.looking))
            let later = AgentVault(vault).storage(service: "benchmark")
            var (bare, looking, blocking, asynchronous, file) = (
                Measurement(), Measurement(), Measurement(), Measurement(), Measurement()
            )
            // The variants take turns, so that other load on the machine affects all of them equally.
            for round in 0..<rounds {
                for index in InterleavedMeasurement.order(of: 5, in: round) {
                    for call in 0..<calls {
                        // Each call asks for another item, as programs do.
                        let name = names[(round * 5 + index + call) * 37 % items]
                        var (time, found) = (Measurement(), Secret?.none)
                        switch index {
                        case 0: time.time { echo.exchange(request: 150, answer: size) }
                        case 1: time.time { lookingEcho.exchange(request: 150, answer: size) }
                        case 2: try time.time { found = try storage.secret(for: name) }
                        case 3:
                            try time.time {
                                found = try direct.storage(service: "benchmark").secret(for: name)
                            }
                        default: try await time.time { found = try await later.secret(for: name) }
                        }
                        guard index < 2 || found?.count == size else { throw Errno.badMessage }
                        // The server of the previous variant polls for 50 µs more, on a processor that this
                        // variant needs. Only the second half of the calls counts.
                        guard call >= calls / 2 else { continue }
                        switch index {
                        case 0: bare.add(time.last)
                        case 1: looking.add(time.last)
                        case 2: blocking.add(time.last)
                        case 3: file.add(time.last)
                        default: asynchronous.add(time.last)
                        }
                    }
                }
            }
            Report.say(
                "retrieve \(size) B, among \(items), through the agent, and an echo of as many over a Unix socket, in turn"
            )
            Report.judge(
                "agent: retrieve \(size) B / echo over a Unix socket", Spread(blocking, per: bare),
                .atMost(1.5),
                of: [
                    ("retrieve", blocking), ("echo", bare), ("from a task", asynchronous),
                    ("the file itself", file),
                ])
            Report.judge(
                "agent: retrieve \(size) B / echo that looks for a while before it sleeps, as the agent does",
                Spread(blocking, per: looking), nil, of: [("such an echo", looking)])
            try reportAfterPauses(echo, storage, names, size)
        }
    }

    /// Who asks once in a while finds everybody asleep, the processor too.
    private static func reportAfterPauses(
        _ echo: Echo, _ storage: some BlockingTokenStorage, _ names: [TokenKey], _ size: Int
    ) throws {
        var (bare, retrieve) = (Measurement(), Measurement())
        for round in 0..<200 {
            for index in InterleavedMeasurement.order(of: 2, in: round) {
                usleep(10_000)
                if index == 0 {
                    bare.time { echo.exchange(request: 150, answer: size) }
                } else {
                    var found: Secret?
                    try retrieve.time { found = try storage.secret(for: names[round % items]) }
                    guard found?.count == size else { throw Errno.badMessage }
                }
            }
        }
        Report.judge(
            "agent: retrieve \(size) B / echo, each after 10 ms in which nobody asks",
            Spread(retrieve, per: bare),
            nil, of: [("retrieve", retrieve), ("echo", bare)])
    }

    static func start(_ program: String, _ arguments: [String]) throws -> pid_t {
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        let result = posix_spawn(&process, program, nil, nil, &words, environ)
        guard result == 0 else { throw Errno(rawValue: result) }
        return process
    }
}
