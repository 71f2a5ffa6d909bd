import Glibc
import Testing

/// Runs the program that was built beside the tests, as a shell would.
enum Child {
    /// How a child ended, and what it said.
    struct Outcome {
        /// The exit status; 128 and the signal's number for one that a signal ended.
        var status: Int32
        var output: [UInt8]
        var error: String

        /// Standard output as text.
        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// What standard input is.
    enum Input {
        case bytes([UInt8])
        case closed
        case path(String)
    }

    /// What standard output is.
    enum Output {
        case captured
        case closed
        case path(String)
        case descriptor(Int32)
    }

    /// The program under test, beside the tests' own executable.
    static let program: String = {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let path = String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
        return path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
            .joined(separator: "/") + "/vaultctl"
    }()

    /// Runs `program` with `arguments` to its end.
    static func run(
        program: String = Child.program, _ arguments: [[UInt8]], environment: [String: String],
        input: Input = .bytes([]), output: Output = .captured, inheriting descriptors: [(Int32, Int32)] = []
    ) throws -> Outcome {
        let captured = try ScratchFile()
        let errors = try ScratchFile()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let given = try ScratchFile()
        switch input {
        case .bytes(let bytes):
            try given.fill(bytes)
            posix_spawn_file_actions_adddup2(&actions, given.descriptor, 0)
        case .closed: posix_spawn_file_actions_addclose(&actions, 0)
        case .path(let path): posix_spawn_file_actions_addopen(&actions, 0, path, O_RDONLY, 0)
        }
        switch output {
        case .captured: posix_spawn_file_actions_adddup2(&actions, captured.descriptor, 1)
        case .closed: posix_spawn_file_actions_addclose(&actions, 1)
        case .path(let path): posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY, 0)
        case .descriptor(let descriptor): posix_spawn_file_actions_adddup2(&actions, descriptor, 1)
        }
        posix_spawn_file_actions_adddup2(&actions, errors.descriptor, 2)
        for (descriptor, number) in descriptors {
            posix_spawn_file_actions_adddup2(&actions, descriptor, number)
        }
        // Closes descriptors that another test has just opened without close-on-exec.
        let inherited = Set(descriptors.map(\.1))
        for number in 3..<64 as Range<Int32> where !inherited.contains(number) {
            posix_spawn_file_actions_addclose(&actions, number)
        }
        let process = try spawn(program, arguments, environment, &actions, newSession: true)
        let status = try wait(for: process)
        return Outcome(
            status: status, output: try captured.contents(),
            error: String(decoding: try errors.contents(), as: UTF8.self))
    }

    /// Starts a program. Each is in a session of its own: without a terminal, unless it opens one.
    static func spawn(
        _ program: String, _ arguments: [[UInt8]], _ environment: [String: String],
        _ actions: inout posix_spawn_file_actions_t, newSession: Bool
    ) throws -> pid_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // POSIX_SPAWN_SETSID, which Swift's Glibc does not declare. Signals are set as in a login shell.
        var flags = Int32(POSIX_SPAWN_SETSIGDEF) | Int32(POSIX_SPAWN_SETSIGMASK)
        if newSession { flags |= 0x80 }
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)

        var words = ([Array(program.utf8)] + arguments).map { strdup(bytes: $0) }
        words.append(nil)
        var variables = environment.map { strdup(bytes: Array("\($0)=\($1)".utf8)) }
        variables.append(nil)
        defer { for pointer in words + variables { free(pointer) } }
        var process: pid_t = 0
        let result = posix_spawn(&process, program, &actions, &attributes, words, variables)
        try #require(result == 0, "posix_spawn: \(String(cString: strerror(result)))")
        return process
    }

    static func wait(for process: pid_t) throws -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 { try #require(errno == EINTR) }
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : 128 + signal
    }

    private static func strdup(bytes: [UInt8]) -> UnsafeMutablePointer<CChar>? {
        (bytes + [0]).withUnsafeBytes {
            $0.baseAddress.flatMap { Glibc.strdup($0.assumingMemoryBound(to: CChar.self)) }
        }
    }
}

/// A file without a name, closed when a program is started.
final class ScratchFile {
    let descriptor: Int32

    init() throws {
        let path = "/tmp/vaultctl-test-\(UInt64.random(in: 0...UInt64.max))"
        descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        unlink(path)
    }

    deinit { close(descriptor) }

    func fill(_ bytes: [UInt8]) throws {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written, off_t(written))
            }
            try #require(count > 0)
            written += count
        }
    }

    func contents() throws -> [UInt8] {
        var information = stat()
        try #require(fstat(descriptor, &information) == 0)
        var bytes = [UInt8](repeating: 0, count: Int(information.st_size))
        let count = pread(descriptor, &bytes, bytes.count, 0)
        try #require(count == bytes.count)
        return bytes
    }
}
