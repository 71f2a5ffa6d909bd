internal import CLinux
internal import Glibc
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
    /// that went away ends us.
    package static func prepare() {
        for (stream, mode) in [(Self.input, O_WRONLY), (.output, O_RDONLY), (.error, O_RDONLY)]
        where clinux_is_open(stream.rawValue) == 0 {
            _ = open("/dev/null", mode)
        }
        clinux_default_signal(SIGPIPE)
        // A file that may not grow further is an error of the write, not the end of the program.
        clinux_ignore_signal(SIGXFSZ)
    }

    /// Whether the stream is a terminal (`isatty`).
    package var isTerminal: Bool { isatty(rawValue) == 1 }

    /// The width of the terminal in columns (`TIOCGWINSZ`); `nil` when it is none.
    package var columns: Int? {
        var size = winsize()
        guard ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Writes all of `bytes` (`write`).
    package func write(_ bytes: RawSpan) throws(SystemFailure) {
        let failure: SystemFailure? = bytes.withUnsafeBytes { buffer in
            Self.write(buffer, to: rawValue)
        }
        if let failure { throw failure }
    }

    /// Writes all of `bytes` (`write`).
    package func write(_ bytes: [UInt8]) throws(SystemFailure) {
        // Array.withUnsafeBytes would make the error an `any Error`.
        let failure: SystemFailure? = bytes.withUnsafeBytes { Self.write($0, to: rawValue) }
        if let failure { throw failure }
    }

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
