import Glibc
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// A private D-Bus with a real gnome-keyring on it, and other programs that follow the test's commands. All
/// of them are in one directory. They stop with the last reference, or when the test process ends in any way.
final class PrivateDesktop: @unchecked Sendable {
    // Serializes the commands.
    private let lock = Monitor(())
    private let commands: FileDescriptor
    private let answers: FileDescriptor
    private let process: pid_t
    /// Where everything is.
    let path: String

    /// A bus, and nothing on it.
    init() throws {
        // In memory if possible: the tests do not cover the daemon's waits for a disk.
        let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        var template = Array("\(parent)/tokenvault-desktop-XXXXXX".utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
        let input = try FileDescriptor.closedOnExec()
        let output = try FileDescriptor.closedOnExec()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input.read.rawValue, 0)
        posix_spawn_file_actions_adddup2(&actions, output.write.rawValue, 1)
        let words = ["/usr/bin/python3", "-B", "\(supportDirectory)/Desktop/desktop.py", path]
        let started = Result { try spawn(words, &actions, ["PATH=/usr/bin:/bin"]) }
        try input.read.close()
        try output.write.close()
        process = try started.get()
        commands = input.write
        answers = output.read
        _ = try answer(to: "start")
    }

    /// A bus with an unlocked login keyring.
    static func withKeyring() throws -> PrivateDesktop {
        let desktop = try PrivateDesktop()
        try desktop.tell("start_keyring")
        return desktop
    }

    deinit {
        try? commands.close()
        try? answers.close()
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        removeTree(FilePath(path))
    }

    /// The bus's address.
    var address: String { "unix:path=\(path)/bus" }

    /// Has something done, and gives what came of it, word by word.
    @discardableResult
    func tell(_ command: String, _ words: String...) throws -> [String] { try tell(command, words) }

    /// Starts a service that misbehaves as told, instead of a keyring.
    func start(fake behaviours: [String]) throws { _ = try tell("start_fake", behaviours) }

    @discardableResult
    func tell(_ command: String, _ words: [String]) throws -> [String] {
        try lock.withLock { _ in
            Result {
                try commands.writeAll(Array(([command] + words).joined(separator: "\t").utf8) + [0x0a])
                return try answer(to: command)
            }
        }.get()
    }

    /// Returns what the misbehaving service says next. Waits on a thread of its own: the pool's few threads
    /// are for the tasks that make the service say something.
    func hear() async throws -> [String] {
        let thread = WorkerThread(name: "listener")
        return try await withCheckedThrowingContinuation { continuation in
            thread.run { continuation.resume(with: Result { try self.tell("fake_says") }) }
        }
    }

    /// The keyring as a configuration for this bus.
    func configuration(
        collection: SecretServiceConfiguration.Collection = .default, createsCollection: Bool = false,
        prompting: SecretServiceConfiguration.Prompting = .never, timeout: Duration = .seconds(3_600),
        allowsPlainSession: Bool = false
    ) -> SecretServiceConfiguration {
        SecretServiceConfiguration(
            bus: .address(address), collection: collection, createsCollection: createsCollection,
            prompting: prompting, timeout: timeout, allowsPlainSession: allowsPlainSession)
    }

    /// A new connection to the keyring.
    func service() -> SecretService { SecretService(configuration: configuration()) }

    /// What a program of this desktop prints; `nil` when it fails, unless it may.
    func run(_ words: String..., input: String = "", mayFail: Bool = false) throws -> String? {
        try run(words, input: input, mayFail: mayFail)
    }

    /// The same, of a list of words.
    func run(_ words: [String], input: String = "", mayFail: Bool = false) throws -> String? {
        let output = FilePath("\(path)/output")
        let script = "printf %s \"$0\" | \"$@\" >\"\(output)\" 2>/dev/null"
        var environment = ["HOME=\(path)/home", "PATH=/usr/bin:/bin", "DBUS_SESSION_BUS_ADDRESS=\(address)"]
        environment.append("LC_ALL=C.UTF-8")
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let started = try spawn(["/bin/bash", "-c", script, input] + words, &actions, environment)
        var status: CInt = 0
        while waitpid(started, &status, 0) < 0, errno == EINTR {}
        guard status == 0 || mayFail else { return nil }
        return contents(of: output)
    }

    private func answer(to command: String) throws -> [String] {
        var line: [UInt8] = []
        var byte: [UInt8] = [0]
        while true {
            let count = try byte.withUnsafeMutableBytes { try answers.read(into: $0) }
            try #require(count == 1, "the desktop ended during \(command)")
            if byte[0] == 0x0a { break }
            line.append(byte[0])
        }
        let words = String(decoding: line, as: UTF8.self).split(
            separator: "\t", omittingEmptySubsequences: false
        ).map(String.init)
        try #require(words[0] == "ok", "\(command): \(words)")
        return Array(words.dropFirst())
    }
}

/// Where the programs that tests use are.
let supportDirectory = FilePath(#filePath).removingLastComponent().removingLastComponent()
    .appending("Support").string

extension FileDescriptor {
    /// A pipe that no child inherits.
    static func closedOnExec() throws -> (read: FileDescriptor, write: FileDescriptor) {
        let ends = try pipe()
        for end in [ends.readEnd, ends.writeEnd] {
            try #require(fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0)
        }
        return (ends.readEnd, ends.writeEnd)
    }
}

/// Starts a program, with no signal blocked: threads of Swift's pool block most of them.
func spawn(
    _ words: [String], _ actions: inout posix_spawn_file_actions_t, _ environment: [String]
) throws -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
    defer { for pointer in arguments + variables { free(pointer) } }
    var process = pid_t()
    let result = posix_spawn(
        &process, words[0], &actions, &attributes, &arguments, &variables)
    try #require(result == 0, "posix_spawn: \(String(cString: strerror(result)))")
    return process
}

/// A file as text; `nil` when it cannot be read.
func contents(of path: FilePath) -> String? {
    (try? SmallFile.read(path, limit: 16 << 20)).map { String(decoding: $0.bytes, as: UTF8.self) }
}

/// Removes a directory and all below it.
func removeTree(_ path: FilePath) {
    guard let directory = try? PosixDirectory(path), let names = try? directory.names() else { return }
    for name in names {
        let below = path.appending(name)
        if (try? directory.attributes(of: name))?.kind == .directory {
            removeTree(below)
        } else {
            try? directory.remove(name)
        }
    }
    try? PosixDirectory.removeEmpty(path)
}

/// A socket that takes connections and says nothing.
final class SilentSocket {
    let path = "/tmp/tokenvault-silent-\(UInt64.random(in: .min ... .max))"
    private let descriptor: CInt

    init() throws {
        descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0 && listen(descriptor, 8) == 0)
    }

    deinit {
        close(descriptor)
        unlink(path)
    }
}

/// The program beside the test bundle.
var vaultctl: String {
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
    return FilePath(bundle).removingLastComponent().appending("vaultctl").string
}
