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
    /// What a retrieve may cost, in echoes.
    static let limit = 2.0

    static func main() async throws {
        if CommandLine.arguments.dropFirst().first == "--echo" { return Echo.serve() }
        guard CommandLine.arguments.count == 2 else {
            print("usage: agent-benchmark VAULTCTL-AGENT")
            exit(64)
        }
        let directory = FilePath("/tmp/agent-benchmark-\(getpid())")
        guard mkdir(directory.string, 0o700) == 0 else { throw Errno(rawValue: errno) }
        defer { try? run("/bin/rm", ["-rf", directory.string]) }
        let place = AgentPlace(directory: directory.appending("run"))
        let agent = try start(CommandLine.arguments[1], ["--directory", place.directory.string])
        defer { kill(agent, SIGTERM) }

        let path = directory.appending("benchmark.vault")
        let state = directory.appending("state")
        let key = UnlockMethod.keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))
        let configuration = FileVaultConfiguration(stateDirectory: state)
        try BlockingFileVault.create(at: path, unlockMethod: key, configuration: configuration).close()
        let vault = BlockingAgentVault(at: path, agent: place)
        while (try? vault.unlock(with: key, stateDirectory: state)) == nil { sched_yield() }
        let direct = try BlockingFileVault.open(at: path, configuration: configuration)
        try direct.unlock(with: key)

        var isMet = true
        for size in [64, 2_048] {
            let secret = Secret(repeatElement(UInt8(0x61), count: size))
            let name = TokenKey("token of \(size)")
            let storage = vault.storage(service: "benchmark")
            try storage.store(secret, for: name)
            let echo = try Echo(in: directory)
            let later = AgentVault(vault).storage(service: "benchmark")
            var (bare, blocking, asynchronous, file) = (
                Measurement(), Measurement(), Measurement(), Measurement()
            )
            // In turns: what else the machine does meets all of them alike.
            for round in 0..<rounds {
                bare.time { echo.exchange(request: 150, answer: size) }
                try blocking.time { _ = try storage.secret(for: name) }
                try file.time { _ = try direct.storage(service: "benchmark").secret(for: name) }
                guard round % 4 == 0 else { continue }
                let start = ContinuousClock.now
                _ = try await later.secret(for: name)
                let parts = start.duration(to: .now).components
                asynchronous.add(Double(parts.seconds) * 1e6 + Double(parts.attoseconds) / 1e12)
            }
            let ratio = blocking.p50 / bare.p50
            print(
                "\(size) B: echo p50 \(rounded(bare.p50)) µs, through the agent \(rounded(blocking.p50)) µs, p99 \(rounded(blocking.percentile(0.99))) against "
                    + "\(rounded(bare.percentile(0.99))) µs; from a task \(rounded(asynchronous.p50)) µs; "
                    + "the file itself \(rounded(file.p50)) µs")
            isMet = isMet && ratio <= limit
            print(
                "  \(ratio <= limit ? "met   " : "MISSED")  ratio: \(rounded(ratio)) × an echo (at most \(limit))"
            )
        }
        guard isMet else { throw Missed() }
    }

    static func start(_ program: String, _ arguments: [String]) throws -> pid_t {
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        let result = posix_spawn(&process, program, nil, nil, &words, environ)
        guard result == 0 else { throw Errno(rawValue: result) }
        return process
    }

    static func run(_ program: String, _ arguments: [String]) throws {
        let process = try start(program, arguments)
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
    }
}

/// A target was not met, which the output tells.
struct Missed: Error {}

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
