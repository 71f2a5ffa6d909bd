internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// The three standard streams of a program, used by descriptor: nothing is buffered elsewhere, and no error
/// is lost.
package enum StandardStream: CInt, Sendable {
    case input = 0
    case output = 1
    case error = 2

    /// Makes the streams safe to use. A program calls this first.
    ///
    /// A closed descriptor 0, 1 or 2 would be reused for the next opened file, and a message could be written
    /// into a vault. So each gets `/dev/null` in the wrong mode, and reading or writing it still fails with
    /// `EBADF`.
    ///
    /// `SIGPIPE` gets its default action, whatever the parent did: a reader that goes away ends this program.
    /// `SIGCHLD` does too: a program that ignores it cannot learn how its child processes ended.
    package static func prepare() {
        for (stream, mode) in [(Self.input, O_WRONLY), (.output, O_RDONLY), (.error, O_RDONLY)]
        where clinux_is_open(stream.rawValue) == 0 {
            _ = open("/dev/null", mode)
        }
        clinux_default_signal(SIGPIPE)
        clinux_default_signal(SIGCHLD)
        // Exceeding the file size limit is an error of the write and does not end the program.
        clinux_ignore_signal(SIGXFSZ)
    }

    /// Makes a write to a reader that went away fail (`EPIPE`) instead of ending the program (`SIGPIPE`).
    /// From now on ``hurry(within:)`` also limits writes under way.
    package static func outliveReaders() {
        clinux_ignore_signal(SIGPIPE)
        state.withLock { $0.mayBeHurried = true }
    }

    /// Reverses ``outliveReaders()``.
    package static func endWithReaders() {
        clinux_default_signal(SIGPIPE)
        state.withLock { $0.mayBeHurried = false }
    }

    /// Brings ``deadline`` forward, also for writes under way.
    package static func hurry(within limit: Duration) {
        let end = Deadline(after: limit)
        state.withLock { state in
            if let deadline = state.deadline, deadline.remaining < end.remaining { return }
            state.deadline = end
        }
    }

    /// Redirects the stream to `/dev/null` from now on.
    package func discard() {
        let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard nowhere >= 0 else { return }
        dup2(nowhere, rawValue)
        close(nowhere)
    }

    /// Whether the stream is a terminal (`isatty`).
    package var isTerminal: Bool { isatty(rawValue) == 1 }

    /// The width of the terminal in columns (`TIOCGWINSZ`); `nil` when the stream is no terminal.
    package var columns: Int? {
        var size = winsize()
        guard ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Returns `text`, cut to one line of the terminal with room for the cursor, or all of it when the stream
    /// is no terminal. A line that wraps would not be overwritten by its replacement.
    package func cut(_ text: String) -> String {
        guard let columns, text.count >= columns else { return text }
        return text.prefix(max(0, columns - 2)) + "…"
    }

    /// Writes all of `bytes` (`write`). Throws `ETIMEDOUT` when ``deadline`` passes before a reader has taken
    /// them.
    package func write(_ bytes: RawSpan) throws(SystemFailure) {
        let failure: SystemFailure? = bytes.withUnsafeBytes { write($0) }
        if let failure { throw failure }
    }

    /// Writes all of `bytes` (`write`). Throws `ETIMEDOUT` when ``deadline`` passes before a reader has taken
    /// them.
    package func write(_ bytes: [UInt8]) throws(SystemFailure) {
        // Array.withUnsafeBytes would make the error an `any Error`.
        let failure: SystemFailure? = bytes.withUnsafeBytes { write($0) }
        if let failure { throw failure }
    }

    private func write(_ buffer: UnsafeRawBufferPointer) -> SystemFailure? {
        let failure =
            if Self.state.withLock({ $0.mayBeHurried || $0.deadline != nil }) {
                TimedWriting.write(buffer, to: rawValue) { Self.deadline }
            } else {
                Self.write(buffer, to: rawValue)
            }
        if self == .output, let failure { Self.state.withLock { $0.outputFailure = failure } }
        return failure
    }

    private struct State {
        var deadline: Deadline?
        /// Whether the deadline may be set or brought forward during a write.
        var mayBeHurried = false
        var outputFailure: SystemFailure?
    }

    private static let state = Mutex(State())

    /// The time at which writes to these streams stop waiting for a reader; `nil`, the initial value, for
    /// never. Later writes still succeed if they need not wait.
    package static var deadline: Deadline? {
        get { state.withLock { $0.deadline } }
        set { state.withLock { $0.deadline = newValue } }
    }

    /// The error of the last failed write to standard output; `nil` when every write succeeded.
    package static var outputFailure: SystemFailure? { state.withLock { $0.outputFailure } }

    /// Closes the stream. Some file systems report a full disk only here (`close`).
    package func finish() throws(SystemFailure) {
        if close(rawValue) != 0, errno != EINTR { throw SystemFailure(Errno(rawValue: errno), "close") }
    }

    package static func write(_ buffer: UnsafeRawBufferPointer, to descriptor: CInt) -> SystemFailure? {
        var written = 0
        while written < buffer.count {
            let result = Glibc.write(
                descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written)
            if result >= 0 {
                written += result
            } else if errno == EAGAIN {
                // The descriptor is shared with a program that made it non-blocking.
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&waiting, 1, -1)
            } else if errno != EINTR {
                return SystemFailure(Errno(rawValue: errno), "write")
            }
        }
        return nil
    }
}
