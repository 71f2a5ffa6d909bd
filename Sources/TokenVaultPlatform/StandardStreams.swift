internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// The three streams a program starts with, written and read by descriptor: nothing is buffered behind
/// our back and no failure is lost.
package enum StandardStream: CInt, Sendable {
    case input = 0
    case output = 1
    case error = 2

    /// Makes the streams safe to use; the first thing a program does.
    ///
    /// A closed descriptor 0, 1 or 2 would be given to the next file that is opened, and a message could
    /// land in a vault: each gets `/dev/null` the wrong way round, so that reading or writing it still
    /// fails with `EBADF`. `SIGPIPE` gets its default action back, whatever the parent had done: a reader
    /// that went away ends us. So does `SIGCHLD`: the programs of one who ignores it end untold.
    package static func prepare() {
        for (stream, mode) in [(Self.input, O_WRONLY), (.output, O_RDONLY), (.error, O_RDONLY)]
        where clinux_is_open(stream.rawValue) == 0 {
            _ = open("/dev/null", mode)
        }
        clinux_default_signal(SIGPIPE)
        clinux_default_signal(SIGCHLD)
        // A file that may not grow further is an error of the write, not the end of the program.
        clinux_ignore_signal(SIGXFSZ)
    }

    /// Has the writing to a reader that went away fail (`EPIPE`) from now on, rather than end the program (`SIGPIPE`), and
    /// ``hurry(within:)`` bound also what is being written by then.
    package static func outliveReaders() {
        clinux_ignore_signal(SIGPIPE)
        state.withLock { $0.mayBeHurried = true }
    }

    /// Ends what ``outliveReaders()`` began.
    package static func endWithReaders() {
        clinux_default_signal(SIGPIPE)
        state.withLock { $0.mayBeHurried = false }
    }

    /// Brings ``deadline`` forward, also for who is writing already.
    package static func hurry(within limit: Duration) {
        let end = Deadline(after: limit)
        state.withLock { state in
            if let deadline = state.deadline, deadline.remaining < end.remaining { return }
            state.deadline = end
        }
    }

    /// Leads what is written to the stream from now on nowhere (`/dev/null`).
    package func discard() {
        let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard nowhere >= 0 else { return }
        dup2(nowhere, rawValue)
        close(nowhere)
    }

    /// Whether the stream is a terminal (`isatty`).
    package var isTerminal: Bool { isatty(rawValue) == 1 }

    /// The width of the terminal in columns (`TIOCGWINSZ`); `nil` when it is none.
    package var columns: Int? {
        var size = winsize()
        guard ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// `text`, cut so that it is in one line of the terminal, with room for the cursor; whole when it is none. A line that goes on
    /// in the next one is not overwritten by what replaces it.
    package func cut(_ text: String) -> String {
        guard let columns, text.count >= columns else { return text }
        return text.prefix(max(0, columns - 2)) + "…"
    }

    /// Writes all of `bytes` (`write`). `ETIMEDOUT` when ``deadline`` passes before a reader has taken them.
    package func write(_ bytes: RawSpan) throws(SystemFailure) {
        let failure: SystemFailure? = bytes.withUnsafeBytes { write($0) }
        if let failure { throw failure }
    }

    /// Writes all of `bytes` (`write`). `ETIMEDOUT` when ``deadline`` passes before a reader has taken them.
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
        /// Whether that may come, or come nearer, while somebody writes.
        var mayBeHurried = false
        var outputFailure: SystemFailure?
    }

    private static let state = Mutex(State())

    /// When writing to these streams gives up waiting for a reader; `nil`, as at first, for never. What can be written
    /// without waiting is written afterwards as well.
    package static var deadline: Deadline? {
        get { state.withLock { $0.deadline } }
        set { state.withLock { $0.deadline = newValue } }
    }

    /// Why standard output did not take what was written to it; `nil` when it took everything.
    package static var outputFailure: SystemFailure? { state.withLock { $0.outputFailure } }

    /// Closes the stream. Some file systems report a full disk only here (`close`).
    package func finish() throws(SystemFailure) {
        if close(rawValue) != 0, errno != EINTR { throw SystemFailure(Errno(rawValue: errno), "close") }
    }

    static func write(_ buffer: UnsafeRawBufferPointer, to descriptor: CInt) -> SystemFailure? {
        var written = 0
        while written < buffer.count {
            let result = Glibc.write(
                descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written)
            if result >= 0 {
                written += result
            } else if errno == EAGAIN {
                // A descriptor shared with a program that made it non-blocking.
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&waiting, 1, -1)
            } else if errno != EINTR {
                return SystemFailure(Errno(rawValue: errno), "write")
            }
        }
        return nil
    }
}
