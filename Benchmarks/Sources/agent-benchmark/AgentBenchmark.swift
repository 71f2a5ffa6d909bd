import Glibc
import Measuring
import SystemPackage
import TokenVault
import VaultAgent

/// What a retrieve through the agent costs, against a bare echo of as many bytes over a Unix socket, each with the other
/// end in a process of its own.
///
/// `agent-benchmark VAULTCTL-AGENT`; the program starts itself for the echo.
@main enum AgentBenchmark {
    static let rounds = 20_000
    static let items = 100

    static func main() async throws {
        if CommandLine.arguments.dropFirst().first == "--echo" { return Echo.serve() }
        guard CommandLine.arguments.count == 2 else {
            print("usage: agent-benchmark VAULTCTL-AGENT")
            exit(64)
        }
        // A short path: those of sockets have a limit.
        try await withTemporaryDirectory(in: "/tmp") { try await run(in: FilePath($0)) }
    }

    private static func run(in directory: FilePath) async throws {
        let place = AgentPlace(directory: directory.appending("run"))
        let agent = try start(CommandLine.arguments[1], ["--directory", place.directory.string])
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
            let echo = try Echo(in: directory)
            let later = AgentVault(vault).storage(service: "benchmark")
            var (bare, blocking, asynchronous, file) = (
                Measurement(), Measurement(), Measurement(), Measurement()
            )
            // What else the machine does meets all of them alike.
            for round in 0..<rounds {
                for index in Turns.order(of: 4, in: round) {
                    // Another one each time, as programs ask.
                    let name = names[(round * 4 + index) * 37 % items]
                    var found: Secret?
                    switch index {
                    case 0:
                        bare.time { echo.exchange(request: 150, answer: size) }
                        continue
                    case 1: try blocking.time { found = try storage.secret(for: name) }
                    case 2:
                        try file.time { found = try direct.storage(service: "benchmark").secret(for: name) }
                    default: try await asynchronous.time { found = try await later.secret(for: name) }
                    }
                    guard found?.count == size else { throw Errno.badMessage }
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
        }
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

/// A process that answers with as many bytes as it is asked for, and nothing else.
final class Echo {
    private let socket: CInt
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    init(in directory: FilePath) throws {
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
            throw Errno(rawValue: errno)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        posix_spawn_file_actions_addclose(&actions, ends[0])
        let arguments: [String] = ["/proc/self/exe", "--echo"]
        var words = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        let result = posix_spawn(&process, "/proc/self/exe", &actions, nil, &words, environ)
        close(ends[1])
        guard result == 0 else { throw Errno(rawValue: result) }
        socket = ends[0]
    }

    deinit { close(socket) }

    /// Sends `request` bytes, which say how many the answer has, and receives those.
    func exchange(request: Int, answer: Int) {
        withUnsafeBytes(of: UInt32(answer)) { buffer.replaceSubrange(0..<4, with: $0) }
        _ = send(socket, buffer, request, 0)
        var received = 0
        while received < answer { received += max(0, recv(socket, &buffer, buffer.count, 0)) }
    }

    static func serve() {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            guard recv(0, &buffer, buffer.count, 0) > 0 else { return }
            let count = buffer.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
            _ = send(0, buffer, Int(count), 0)
        }
    }
}
