import Glibc
import Measuring

/// This program once more, at something else, until it is ended.
final class Others {
    private let process: pid_t

    /// Starts it, and waits until it says that it has begun.
    init(_ words: String...) throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXFailure(number: errno) }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_addclose(&actions, ends[0])
        posix_spawn_file_actions_addclose(&actions, ends[1])
        var arguments = (["/proc/self/exe"] + words).map { strdup($0) } + [nil]
        defer { for word in arguments { free(word) } }
        var process = pid_t()
        let result = posix_spawn(&process, "/proc/self/exe", &actions, nil, &arguments, environ)
        close(ends[1])
        guard result == 0 else { throw POSIXFailure(number: result) }
        self.process = process
        var byte: UInt8 = 0
        guard read(ends[0], &byte, 1) == 1 else { throw POSIXFailure(number: ESRCH) }
    }

    func end() {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }
}
