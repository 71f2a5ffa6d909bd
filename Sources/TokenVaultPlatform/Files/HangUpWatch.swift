internal import CLinux
internal import Glibc
internal import SystemPackage

/// Detects that the peer of a connected socket is gone, without reading from the socket.
package final class HangUpWatch: Sendable {
    // A copy, because the socket's owner may close the original at any time.
    private let copy: CInt

    /// Watches the socket `descriptor`. Throws system errors: `EBADF`, `EMFILE`.
    package init(on descriptor: CInt) throws(SystemFailure) {
        copy = try retrying("fcntl(F_DUPFD_CLOEXEC)") { clinux_duplicate(descriptor, 3) }
    }

    deinit { close(copy) }

    /// Waits until the peer is gone, `event` is woken or `duration` has passed; `nil` means no limit. Returns
    /// whether the peer is gone. `poll(2)` reports `POLLHUP` without a request.
    package func wait(orWake event: WakeEvent, atMost duration: Duration? = nil) -> Bool {
        let deadline = duration.map { Deadline(after: $0) }
        return event.wait(
            for: copy, events: 0, milliseconds: InputSource.milliseconds(until: deadline))
    }
}
