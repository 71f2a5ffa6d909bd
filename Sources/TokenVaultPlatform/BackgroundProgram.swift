internal import CLinux
internal import Glibc
package import SystemPackage

/// A program that was started to go on by itself: in a session of its own, with nothing of this one's open but its
/// standard error, until it says that it is ready.
package struct BackgroundProgram: Sendable {
    /// The process.
    package let process: Int32
    /// Whether it is ready; otherwise it has ended, or is about to: ``wait()``.
    package let isReady: Bool

    /// The descriptor that the program writes a byte to when it is ready: see ``ReadySignal``.
    package static let readyDescriptor: CInt = 3

    /// Starts `program`, whose arguments say that descriptor 3 is the one to write to, and waits until it is ready or has
    /// ended. Its environment is `environment` and nothing else. Throws what the system failed with, and `ETIMEDOUT`
    /// when it is neither within `timeout`.
    package init(
        _ program: FilePath, _ arguments: [String], environment: [String], isQuiet: Bool = true,
        within timeout: Duration
    ) throws(SystemFailure) {
        var ends: [CInt] = [-1, -1]
        _ = try retrying("pipe2") { clinux_pipe(&ends) }
        defer { close(ends[0]) }
        do {
            defer { close(ends[1]) }
            process = try Self.start(program, arguments, environment, isQuiet: isQuiet, ready: ends[1])
        }
        if let failure = InputSource.wait(for: ends[0], Deadline(after: timeout)) { throw failure }
        var byte: UInt8 = 0
        isReady = read(ends[0], &byte, 1) == 1
    }

    private static func start(
        _ program: FilePath, _ arguments: [String], _ environment: [String], isQuiet: Bool, ready: CInt
    ) throws(SystemFailure) -> Int32 {
        // A copy above all that the program is given, which is not the one it is given.
        let copy = try retrying("fcntl(F_DUPFD_CLOEXEC)") { clinux_duplicate(ready, 10) }
        defer { close(copy) }
        return try ProgramStart.start(
            program, arguments, environment: environment, closingFrom: readyDescriptor + 1
        ) { actions in
            posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0)
            if isQuiet { posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0) }
            posix_spawn_file_actions_adddup2(actions, copy, readyDescriptor)
        }
    }

    /// Waits for its end: the exit status, or 128 and the signal's number when a signal ended it.
    @discardableResult
    package func wait() -> Int32 { ProgramStart.wait(for: process) }
}
