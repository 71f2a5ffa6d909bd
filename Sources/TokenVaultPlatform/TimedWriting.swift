internal import CLinux
internal import Glibc
internal import SystemPackage

/// Writing to a descriptor that others share, and that may have no reader, with a bound on the time.
enum TimedWriting {
    /// Writes all of `buffer`. `ETIMEDOUT` when `deadline` passes while nobody makes room, which is asked for now and then.
    ///
    /// The descriptor stays as it is: to make it non-blocking would do that to whoever shares it. A pipe or terminal is
    /// opened once more instead. Where that cannot be, a little is written whenever there is room: `poll(2)` promises as
    /// much of a pipe and of a socket.
    static func write(
        _ buffer: UnsafeRawBufferPointer, to descriptor: CInt, until deadline: () -> Deadline?
    ) -> SystemFailure? {
        let mode = fcntl(descriptor, F_GETFL)
        // It fails, and at once.
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

    // After which time the deadline may be another.
    private static let slice = Duration.milliseconds(100)
    // PIPE_BUF of Linux.
    private static let leastRoom = 4_096
    // makedev(5, 2): opening that one again makes another terminal.
    private static let terminalMaker: dev_t = 0x502

    /// The pipe or terminal of `descriptor`, opened anew and non-blocking; `nil` when it is neither, or may not be.
    private static func reopened(_ descriptor: CInt) -> CInt? {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { return nil }
        let isTerminal = isatty(descriptor) == 1 && information.st_rdev != terminalMaker
        guard isTerminal || clinux_is_pipe(information.st_mode) != 0 else { return nil }
        let own = open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        return own >= 0 ? own : nil
    }

    /// Waits until `descriptor` takes bytes, or nobody can read them any more. `ETIMEDOUT` when `deadline` passes first.
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
