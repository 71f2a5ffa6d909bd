internal import Glibc
package import SystemPackage
package import TokenVaultPlatform

/// A program that is started to keep running on its own, such as the user's browser. It has a session of its
/// own and shares nothing.
package struct DetachedProgram: Sendable {
    private let process: pid_t

    /// Starts `program` with all standard streams on `/dev/null`. Throws system errors.
    package init(
        _ program: FilePath, _ arguments: [String], environment: [String]
    ) throws(SystemFailure) {
        process = try ProgramStart.start(program, arguments, environment: environment, closingFrom: 3) {
            posix_spawn_file_actions_addopen($0, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_addopen($0, 1, "/dev/null", O_WRONLY, 0)
            posix_spawn_file_actions_addopen($0, 2, "/dev/null", O_WRONLY, 0)
        }
    }

    /// Waits for the program to exit. Returns the exit status, or 128 plus the signal number when a signal
    /// ended it.
    package func wait() -> Int32 { ProgramStart.wait(for: process) }
}
