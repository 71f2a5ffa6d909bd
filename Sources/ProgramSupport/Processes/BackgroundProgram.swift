internal import CLinux
internal import Glibc
package import SystemPackage
package import TokenVaultPlatform

/// A program that is started to keep running on its own, in a session of its own. Until it reports that it is
/// ready, its standard error is the only thing that it may share with this program.
package struct BackgroundProgram: Sendable {
    /// The process identifier.
    package let process: Int32
    /// Whether the program is ready. Otherwise it has exited, or is about to: ``wait()``.
    package let isReady: Bool
    /// The first 4 KiB of its standard error when it exited without being ready; empty unless these were
    /// `kept`.
    package let errors: String

    /// The destination of the program's standard error.
    package enum Errors: Sendable {
        /// Discarded.
        case dropped
        /// This program's standard error.
        case shared
        /// ``BackgroundProgram/errors``, until the program is ready. By then the program must redirect its
        /// standard error: ``StandardStream/discard()``.
        case kept
    }

    /// The descriptor to which the program writes a byte when it is ready: see ``ReadySignal``.
    package static let readyDescriptor: CInt = 3

    /// Starts `program`, and waits until it is ready or has exited. Its `arguments` must name descriptor 3 as
    /// the one to write to. Its environment is exactly `environment`. Throws system errors, and `ETIMEDOUT`
    /// when neither happens within `timeout`. The program is then killed, because nothing else tracks it.
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

    /// Returns the bytes from `descriptor` up to its end or 4 KiB, as text.
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
        // The copy's number is above every descriptor that the program gets, so that no `dup2` overwrites it.
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

    /// Waits for the program to exit. Returns the exit status, or 128 plus the signal number when a signal
    /// ended it.
    @discardableResult
    package func wait() -> Int32 { ProgramStart.wait(for: process) }
}
