import Glibc
import SystemPackage
import TokenVaultPlatform

/// The path of a program that the test build made, beside the test bundle.
func testProgram(_ name: String) -> FilePath {
    var buffer = [CChar](repeating: 0, count: 4_096)
    let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    var path = FilePath(
        String(decoding: buffer[..<max(length, 0)].map { UInt8(bitPattern: $0) }, as: UTF8.self))
    // The tests run in a helper of the toolchain or in the bundle itself. In the helper, the bundle's path is
    // an argument.
    if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
        path = FilePath(bundle)
    }
    return path.removingLastComponent().appending(name)
}

/// A child process whose standard output goes to a file.
final class Child {
    private let process: pid_t
    private let output: FilePath

    init(_ program: FilePath, _ arguments: [String], output: FilePath) throws {
        self.output = output
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(
            &actions, 1, output.string, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        var words: [UnsafeMutablePointer<CChar>?] = ([program.string] + arguments).map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var started = pid_t()
        let result = posix_spawn(&started, program.string, &actions, nil, words, environ)
        guard result == 0 else { throw Errno(rawValue: result) }
        process = started
    }

    /// Kills the process without warning.
    func kill() { _ = Glibc.kill(process, SIGKILL) }

    /// The exit status; 128 and the signal's number when a signal ended it.
    func wait() -> Int {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status & 0x7f == 0 ? Int(status >> 8) & 0xff : 128 + Int(status & 0x7f)
    }

    func readOutput() throws -> String {
        String(decoding: try SmallFile.read(output, limit: 16 << 20).bytes, as: UTF8.self)
    }
}
