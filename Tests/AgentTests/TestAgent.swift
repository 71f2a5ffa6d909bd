import Glibc
import ProgramSupport
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// A real agent, in a process of its own, and a home for it that goes with it.
final class TestAgent: Sendable {
    let home: TestHome
    let process: AgentProcess

    var place: AgentEndpoint { home.place }

    /// An agent in `home`, ready for clients.
    init(in home: TestHome) throws {
        self.home = home
        process = try AgentProcess(at: home.place)
    }

    convenience init() throws { try self.init(in: try TestHome()) }

    deinit { process.end(SIGKILL) }

    /// The home's vault by way of the agent.
    func vault(timeout: Duration = .seconds(300)) -> BlockingAgentVault {
        BlockingAgentVault(at: home.vault, agent: place, timeout: timeout)
    }

    /// The same, unlocked.
    func unlockedVault() throws -> BlockingAgentVault {
        let vault = vault()
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        return vault
    }
}

/// A directory with a vault that a key file opens.
final class TestHome: Sendable {
    static let keyFile = UnlockMethod.keyFile(
        Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))

    let path: FilePath
    var vault: FilePath { path.appending("vaults").appending("test.vault") }
    var state: FilePath { path.appending("state") }
    var place: AgentEndpoint { AgentEndpoint(directory: path.appending("run")) }

    init() throws {
        var template = Array("/tmp/tokenvault-agent-XXXXXX".utf8CString)
        path = FilePath(try #require(mkdtemp(&template).map { String(cString: $0) }))
        try BlockingFileVault.create(at: vault, unlockMethod: Self.keyFile, configuration: configuration)
            .close()
    }

    var configuration: FileVaultConfiguration {
        FileVaultConfiguration(stateDirectory: state, lockTimeout: .seconds(300), keyDerivationCost: .minimum)
    }

    /// The vault, opened without the agent.
    func open() throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: vault, configuration: configuration)
        try vault.unlock(with: Self.keyFile)
        return vault
    }

    deinit { _ = try? Program.run("/bin/rm", ["-rf", path.string]) }
}

/// A process of `vaultctl-agent`.
final class AgentProcess: Sendable {
    private let program: BackgroundProgram
    private let isOver = Mutex(false)

    var identifier: pid_t { program.process }

    /// Starts it and waits until it takes clients. Throws what it ended with when it does not.
    init(at place: AgentEndpoint, environment: [String] = [], arguments: [String] = []) throws {
        program = try BackgroundProgram(
            FilePath(Program.beside("vaultctl-agent")),
            ["--directory", place.directory.string, "--ready-fd", "3"] + arguments,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS=unix:path=/no/bus"] + environment, within: .seconds(300))
        guard program.isReady else { throw Ended(status: wait()) }
    }

    struct Ended: Error, Equatable { let status: Int32 }

    func send(_ signal: Int32) { _ = kill(identifier, signal) }

    /// Ends it if it runs.
    func end(_ signal: Int32) {
        guard !isOver.withLock({ $0 }) else { return }
        send(signal)
        _ = wait()
    }

    /// Its exit status; 128 and the signal's number when a signal ended it.
    @discardableResult
    func wait() -> Int32 {
        isOver.withLock { $0 = true }
        return program.wait()
    }

    /// A field of `/proc/PID/status`, in its unit.
    func fact(_ name: String) throws -> Int {
        let bytes = try SmallFile.read(FilePath("/proc/\(identifier)/status"), limit: 64 << 10).bytes
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix(name + ":") })
        return try #require(line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) })
    }
}

/// Programs that tests start.
enum Program {
    /// The program of that name that was built beside the tests.
    static func beside(_ name: String) -> String {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        var path = FilePath(
            String(decoding: buffer[..<max(length, 0)].map { UInt8(bitPattern: $0) }, as: UTF8.self))
        if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
            path = FilePath(bundle)
        }
        return path.removingLastComponent().appending(name).string
    }

    static func start(
        _ program: String, _ arguments: [String], environment: [String] = [],
        inheriting descriptors: [(Int32, Int32)] = []
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        // Copies above every target number: otherwise one `dup2` could overwrite the source of the next.
        let copies = descriptors.map { fcntl($0.0, F_DUPFD_CLOEXEC, 200) }
        defer { for copy in copies { close(copy) } }
        for (copy, (_, number)) in zip(copies, descriptors) {
            try #require(copy >= 200 && number < 200)
            posix_spawn_file_actions_adddup2(&actions, copy, number)
        }
        // A background job of a shell ignores these signals, and so would its children. The tests need them
        // to end programs.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGQUIT] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        var words = ([program] + arguments).map { strdup($0) }
        var variables = (["PATH=/usr/bin:/bin"] + environment).map { strdup($0) }
        defer { for word in words + variables { free(word) } }
        words.append(nil)
        variables.append(nil)
        var process = pid_t()
        let result = posix_spawn(&process, program, &actions, &attributes, words, variables)
        try #require(result == 0, "posix_spawn: \(String(cString: strerror(result)))")
        return process
    }

    static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : 128 + signal
    }

    /// How a program ended, and what it said.
    struct Outcome {
        var status: Int32
        var output: String
        var error: String
    }

    /// Runs a program to its end.
    static func capture(
        _ program: String, _ arguments: [String], environment: [String], input: String = ""
    ) throws -> Outcome {
        let mark = UInt64.random(in: 0...UInt64.max)
        let names = ["in", "out", "err"].map { "/tmp/vaultctl-agent-\($0)-\(mark)" }
        defer { for name in names { unlink(name) } }
        let descriptors = try names.map { name in
            let descriptor = Glibc.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            try #require(descriptor >= 0)
            return descriptor
        }
        defer { for descriptor in descriptors { close(descriptor) } }
        try #require(write(descriptors[0], input, input.utf8.count) == input.utf8.count)
        lseek(descriptors[0], 0, SEEK_SET)
        let process = try start(
            program, arguments, environment: environment, inheriting: Array(zip(descriptors, 0...2)))
        let status = wait(for: process)
        func text(_ name: String) throws -> String {
            String(decoding: try SmallFile.read(FilePath(name), limit: 1 << 20).bytes, as: UTF8.self)
        }
        return Outcome(status: status, output: try text(names[1]), error: try text(names[2]))
    }

    @discardableResult
    static func run(_ program: String, _ arguments: [String]) throws -> Int32 {
        wait(for: try start(program, arguments))
    }
}
