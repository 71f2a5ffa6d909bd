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
    /// What it said on its standard error before it ended without being ready, of which 4 KiB; empty unless that was kept.
    package let errors: String

    /// Where its standard error goes.
    package enum Errors: Sendable {
        /// Nowhere.
        case dropped
        /// Where this program's goes.
        case shared
        /// To ``BackgroundProgram/errors``, until it is ready. It has to lead it elsewhere by then:
        /// ``StandardStream/discard()``.
        case kept
    }

    /// The descriptor that the program writes a byte to when it is ready: see ``ReadySignal``.
    package static let readyDescriptor: CInt = 3

    /// Starts `program`, whose arguments say that descriptor 3 is the one to write to, and waits until it is ready or has
    /// ended. Its environment is `environment` and nothing else. Throws what the system failed with, and `ETIMEDOUT`
    /// when it is neither within `timeout`; it is ended then, since nobody would know of it.
    package init(
        _ program: FilePath, _ arguments: [String], environment: [String], errors handling: Errors = .dropped,
        within timeout: Duration
    ) throws(SystemFailure) {
        var ends: [CInt] = [-1, -1]
        _ = try retrying("pipe2") { clinux_pipe(&ends) }
        defer { close(ends[0]) }
        var said: [CInt] = [-1, -1]
        if case .kept = handling {
            do { _ = try retrying("pipe2") { clinux_pipe(&said) } } catch {
                close(ends[1])
                throw error
            }
        }
        defer { if said[0] >= 0 { close(said[0]) } }
        do {
            defer {
                close(ends[1])
                if said[1] >= 0 { close(said[1]) }
            }
            process = try Self.start(
                program, arguments, environment, handling, errors: said[1], ready: ends[1])
        }
        let deadline = Deadline(after: timeout)
        if let failure = InputSource.wait(for: ends[0], deadline) {
            kill(-process, SIGKILL)
            _ = ProgramStart.wait(for: process)
            throw failure
        }
        var byte: UInt8 = 0
        isReady = read(ends[0], &byte, 1) == 1
        errors = isReady || said[0] < 0 ? "" : Self.text(said[0], until: deadline)
    }

    /// What comes from `descriptor` to its end.
    private static func text(_ descriptor: CInt, until deadline: Deadline) -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while bytes.count < buffer.count, InputSource.wait(for: descriptor, deadline) == nil {
            let count = read(descriptor, &buffer, buffer.count - bytes.count)
            guard count > 0 else { break }
            bytes += buffer.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func start(
        _ program: FilePath, _ arguments: [String], _ environment: [String], _ handling: Errors,
        errors: CInt, ready: CInt
    ) throws(SystemFailure) -> Int32 {
        // A copy above all that the program is given, which is not the one it is given.
        let copy = try retrying("fcntl(F_DUPFD_CLOEXEC)") { clinux_duplicate(ready, 10) }
        defer { close(copy) }
        var errorsCopy: CInt = -1
        if case .kept = handling {
            errorsCopy = try retrying("fcntl(F_DUPFD_CLOEXEC)") { clinux_duplicate(errors, 10) }
        }
        defer { if errorsCopy >= 0 { close(errorsCopy) } }
        return try ProgramStart.start(
            program, arguments, environment: environment, closingFrom: readyDescriptor + 1
        ) { actions in
            posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0)
            switch handling {
            case .dropped: posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0)
            case .shared: break
            case .kept: posix_spawn_file_actions_adddup2(actions, errorsCopy, 2)
            }
            posix_spawn_file_actions_adddup2(actions, copy, readyDescriptor)
        }
    }

    /// Waits for its end: the exit status, or 128 and the signal's number when a signal ended it.
    @discardableResult
    package func wait() -> Int32 { ProgramStart.wait(for: process) }
}
