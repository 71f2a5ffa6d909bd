internal import CLinux
internal import Glibc
internal import SystemPackage

/// A socket that clients connect to.
package final class SocketListener: Sendable {
    let descriptor: CInt

    /// Takes over `descriptor` and closes it at the end.
    init(descriptor: CInt) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Returns the listening socket that a service manager passed on (`sd_listen_fds(3)`), or `nil` when
    /// there is none. It is descriptor 3, when `LISTEN_PID` is this process and `LISTEN_FDS` at least 1.
    /// Throws `ENOTSOCK` when that is not a listening socket.
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

    /// Returns a client that is already waiting, or `nil` when there is none.
    package func acceptNow() -> UnixSocket? {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, 0) > 0 else { return nil }
        let accepted = clinux_accept(descriptor)
        return accepted >= 0 ? UnixSocket(descriptor: accepted) : nil
    }

    /// The identity of the file that is now at the socket's name (`bind(2)`); `nil` without one.
    package var identity: FileIdentity? {
        var name = [CChar](repeating: 0, count: 128)
        guard clinux_socket_name(descriptor, &name, name.count) > 0 else { return nil }
        return try? FileAttributes(at: FilePath(platformString: name), followingLinks: false).identity
    }

    /// Returns the next client, of any user. Returns `nil` after another event: a signal in the
    /// ``SignalForwarder``, a wake of `waker`, an event in the watched directory, or the end of `duration`.
    /// Throws `EMFILE`, `ENFILE`, `ENOMEM` when resources are short; the client then keeps waiting.
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
            // The client went away before it was accepted.
            case EINTR, ECONNABORTED, EAGAIN: continue
            default: throw SystemFailure(Errno(rawValue: errno), "accept4")
            }
        }
    }
}
