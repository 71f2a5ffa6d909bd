internal import CLinux
internal import Glibc
internal import SystemPackage

/// How other programs are started: in a session of their own, with signals as a login shell has them, and nothing of this
/// one's open but what they are given.
enum ProgramStart {
    /// Starts `program`, whose environment is `environment` and nothing else, after `prepare` has added what is done to its
    /// descriptors. Those from `least` on are closed. Its process; throws what the system failed with.
    static func start(
        _ program: FilePath, _ arguments: [String], environment: [String], closingFrom least: CInt,
        _ prepare: (UnsafeMutablePointer<posix_spawn_file_actions_t>) -> Void
    ) throws(SystemFailure) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        prepare(&actions)
        clinux_close_from(&actions, least)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, clinux_background_flags())
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        var words = ([program.string] + arguments).map { strdup($0) }
        var variables = environment.map { strdup($0) }
        defer { for word in words + variables { free(word) } }
        words.append(nil)
        variables.append(nil)
        var process = pid_t()
        let result = program.withPlatformString {
            posix_spawn(&process, $0, &actions, &attributes, words, variables)
        }
        guard result == 0 else { throw SystemFailure(Errno(rawValue: result), "posix_spawn") }
        return process
    }

    /// Waits for the end of a process that was started and leaves it there: its number is its own until ``wait(for:)``
    /// (`waitid`).
    static func waitForEnd(of process: pid_t) {
        var change = siginfo_t()
        while waitid(P_PID, id_t(process), &change, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    }

    /// Waits for the end of a process that was started: the exit status, or 128 and the signal's number when a signal ended
    /// it; -1 when it was waited for before.
    static func wait(for process: pid_t) -> Int32 {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            if errno != EINTR { return -1 }
        }
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : 128 + signal
    }
}
