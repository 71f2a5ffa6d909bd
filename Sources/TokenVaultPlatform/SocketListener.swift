internal import CLinux
internal import Glibc
internal import SystemPackage

/// A socket that clients connect to.
package final class SocketListener: Sendable {
    let descriptor: CInt

    /// Takes over `descriptor` and closes it at the end.
    init(descriptor: CInt) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// The listening socket that a service manager passed on (`sd_listen_fds(3)`): descriptor 3, when `LISTEN_PID` is
    /// this process and `LISTEN_FDS` at least 1; `nil` when there is none. Throws `ENOTSOCK` for one of another kind.
    package static func inherited() throws(SystemFailure) -> SocketListener? {
        guard let process = ProcessFacts.environment("LISTEN_PID").flatMap({ Int32($0) }),
            process == getpid(), let count = ProcessFacts.environment("LISTEN_FDS").flatMap({ Int($0) }),
            count > 0
        else { return nil }
        let first: CInt = 3
        guard clinux_is_listener(first) != 0 else { throw SystemFailure(.notSocket, "getsockopt") }
        _ = fcntl(first, F_SETFD, FD_CLOEXEC)
        return SocketListener(descriptor: first)
    }

    /// A client who waits already; `nil` when there is none.
    package func acceptNow() -> UnixSocket? {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, 0) > 0 else { return nil }
        let accepted = clinux_accept(descriptor)
        return accepted >= 0 ? UnixSocket(descriptor: accepted) : nil
    }

    /// What has the name by now that the socket was given (`bind(2)`); `nil` without one.
    package var identity: FileIdentity? {
        var name = [CChar](repeating: 0, count: 128)
        guard clinux_socket_name(descriptor, &name, name.count) > 0 else { return nil }
        return try? FileAttributes(at: FilePath(platformString: name), followingLinks: false).identity
    }

    /// The next client, whoever it is; `nil` when ``SignalForwarder`` has a signal, `waker` was woken, something happened
    /// in the directory that is watched, or `duration` is over, first. Throws `EMFILE`, `ENFILE`, `ENOMEM` when there is no room
    /// for one: who waits is still there.
    package func accept(
        orSignal signals: SignalForwarder?, orWake waker: WakeEvent, orIn watch: SocketDirectoryWatch? = nil,
        atMost duration: Duration? = nil
    ) throws(SystemFailure) -> UnixSocket? {
        let deadline = duration.map { Deadline(after: $0) }
        while true {
            var waiting = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: signals?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: watch?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            let result = poll(
                &waiting, nfds_t(waiting.count), InputSource.milliseconds(until: deadline))
            if result == 0, deadline?.hasPassed ?? false { return nil }
            if result < 0, errno != EINTR { throw SystemFailure(Errno(rawValue: errno), "poll") }
            if waiting[1...].contains(where: { $0.revents != 0 }) { return nil }
            guard waiting[0].revents != 0 else { continue }
            let accepted = clinux_accept(descriptor)
            if accepted >= 0 { return UnixSocket(descriptor: accepted) }
            switch errno {
            // It went away before it was taken.
            case EINTR, ECONNABORTED, EAGAIN: continue
            default: throw SystemFailure(Errno(rawValue: errno), "accept4")
            }
        }
    }
}
