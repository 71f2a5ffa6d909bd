internal import Glibc
package import SystemPackage

/// A program that was started to go on by itself, in a session of its own, with nothing of this one's: a person's browser.
package struct DetachedProgram: Sendable {
    private let process: pid_t

    /// Starts `program`. Its standard streams lead nowhere. Throws what the system failed with.
    package init(
        _ program: FilePath, _ arguments: [String], environment: [String]
    ) throws(SystemFailure) {
        process = try ProgramStart.start(program, arguments, environment: environment, closingFrom: 3) {
            posix_spawn_file_actions_addopen($0, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_addopen($0, 1, "/dev/null", O_WRONLY, 0)
            posix_spawn_file_actions_addopen($0, 2, "/dev/null", O_WRONLY, 0)
        }
    }

    /// Waits for its end: the exit status, or 128 and the signal's number when a signal ended it.
    package func wait() -> Int32 { ProgramStart.wait(for: process) }
}
