internal import CLinux
internal import Glibc
internal import SystemPackage
internal import TokenVaultPlatform

/// Starts other programs, each in a session of its own and with the signal actions of a login shell. Of this
/// program's descriptors they get only those passed to them.
enum ProgramStart {
    /// Starts `program`. Its environment is exactly `environment`. `prepare` adds the actions on its
    /// descriptors; descriptors from `least` on are closed. Returns its process identifier. Throws system
    /// errors.
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

    /// Waits for the exit of a started process without reaping it. Its identifier is not reused until
    /// ``wait(for:)`` (`waitid`).
    static func waitForEnd(of process: pid_t) {
        var change = siginfo_t()
        while waitid(P_PID, id_t(process), &change, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    }

    /// Waits for the exit of a started process. Returns the exit status, or 128 plus the signal number when a
    /// signal ended it. Returns -1 when it was reaped before.
    static func wait(for process: pid_t) -> Int32 {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            if errno != EINTR { return -1 }
        }
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : 128 + signal
    }
}
