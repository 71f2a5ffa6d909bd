#if OAuth
import Foundation
import Glibc
import SystemPackage
import Testing
import TokenVaultPlatform

/// A RefreshWorker as a child process: see there for its arguments.
final class WorkerProcess {
    private let process: pid_t
    private let scratch: ScratchDirectory

    /// What a worker said, and how it ended.
    struct End {
        /// The lines on its standard output.
        let lines: [String]
        /// All of its standard error.
        let errors: String
        /// The signal that ended it; 0 when it ended by itself.
        let signal: CInt
        /// What follows `token` in its last line; `nil` when that says something else.
        var token: String? {
            guard let line = lines.last, line.hasPrefix("token ") else { return nil }
            return String(line.dropFirst("token ".count))
        }
        /// The refresh requests that it began: `first`, or `again` for those after one whose outcome is unknown.
        var asked: [String] { lines.filter { $0.hasPrefix("asks ") }.map { String($0.dropFirst(5)) } }
    }

    init(_ arguments: [String], environment: [String] = []) throws {
        scratch = try ScratchDirectory(in: FilePath("/tmp"))
        // The program is beside the tests, whichever program loads the tests.
        let program =
            try CommandLine.arguments.first { $0.hasSuffix(".xctest") }
            ?? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let worker = FilePath(program).removingLastComponent().appending("RefreshWorker").string
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (descriptor, name) in [(1, "output"), (2, "errors")] as [(CInt, String)] {
            posix_spawn_file_actions_addopen(
                &actions, descriptor, scratch.path.appending(name).string, O_WRONLY | O_CREAT, 0o600)
        }
        let words: [UnsafeMutablePointer<CChar>?] = ([worker] + arguments).map { strdup($0) } + [nil]
        let settings = ["PATH=/usr/bin:/bin"] + environment
        let variables: [UnsafeMutablePointer<CChar>?] = settings.map { strdup($0) } + [nil]
        defer { for word in words + variables { free(word) } }
        var process = pid_t()
        try #require(posix_spawn(&process, worker, &actions, nil, words, variables) == 0)
        self.process = process
    }

    deinit { scratch.remove() }

    /// Ends it without warning.
    func kill() { _ = Glibc.kill(process, SIGKILL) }

    /// Waits for its end. It blocks.
    func end() throws -> End {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let (output, errors) = (try text("output"), try text("errors"))
        return End(
            lines: output.split(separator: "\n").map(String.init), errors: errors, signal: status & 0x7f)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: scratch.path.appending(name).string, encoding: .utf8)
    }
}
#endif
