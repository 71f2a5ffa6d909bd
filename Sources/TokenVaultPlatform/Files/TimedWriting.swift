internal import CLinux
internal import Glibc
internal import SystemPackage

/// Writing with a time limit to a shared descriptor that may have no reader.
enum TimedWriting {
    /// Writes all of `buffer`. Returns `ETIMEDOUT` when `deadline` passes before there is room. The deadline
    /// is queried again now and then.
    ///
    /// The descriptor is not made non-blocking, because that would affect all programs that share it. A pipe
    /// or terminal is opened once more instead. Where that is impossible, a small piece is written whenever
    /// there is room: `poll(2)` guarantees that much for a pipe and a socket.
    static func write(
        _ buffer: UnsafeRawBufferPointer, to descriptor: CInt, until deadline: () -> Deadline?
    ) -> SystemFailure? {
        let mode = fcntl(descriptor, F_GETFL)
        // The write fails at once.
        guard mode >= 0, mode & O_ACCMODE != O_RDONLY else {
            return StandardStream.write(buffer, to: descriptor)
        }
        let own = mode & O_NONBLOCK == 0 ? reopened(descriptor) : nil
        defer { if let own { close(own) } }
        let mayBlock = own == nil && mode & O_NONBLOCK == 0
        var written = 0
        while written < buffer.count {
            if mayBlock, let failure = wait(for: descriptor, deadline) { return failure }
            let left = buffer.count - written
            let result = Glibc.write(
                own ?? descriptor, buffer.baseAddress.map { $0 + written },
                mayBlock ? min(left, leastRoom) : left)
            if result >= 0 {
                written += result
            } else if errno == EAGAIN {
                if let failure = wait(for: descriptor, deadline) { return failure }
            } else if errno != EINTR {
                return SystemFailure(Errno(rawValue: errno), "write")
            }
        }
        return nil
    }

    // The interval for querying the deadline again.
    private static let slice = Duration.milliseconds(100)
    // PIPE_BUF of Linux.
    private static let leastRoom = 4_096
    // makedev(5, 2): opening that device again makes another terminal.
    private static let terminalMaker: dev_t = 0x502

    /// Opens the pipe or terminal of `descriptor` again, non-blocking. Returns `nil` when it is neither, or
    /// cannot be opened.
    private static func reopened(_ descriptor: CInt) -> CInt? {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { return nil }
        let isTerminal = isatty(descriptor) == 1 && information.st_rdev != terminalMaker
        guard isTerminal || clinux_is_pipe(information.st_mode) != 0 else { return nil }
        let own = open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        return own >= 0 ? own : nil
    }

    /// Waits until `descriptor` accepts bytes or has no reader left. Returns `ETIMEDOUT` when `deadline`
    /// passes first.
    private static func wait(for descriptor: CInt, _ deadline: () -> Deadline?) -> SystemFailure? {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while true {
            let look = Deadline(after: min(slice, deadline()?.remaining ?? slice))
            let result = poll(&waiting, 1, InputSource.milliseconds(until: look))
            if result > 0 { return nil }
            if result == 0 {
                if deadline()?.hasPassed ?? false { return SystemFailure(.timedOut, "poll") }
            } else if errno != EINTR {
                return SystemFailure(Errno(rawValue: errno), "poll")
            }
        }
    }
}
