internal import CLinux
internal import Glibc
internal import SystemPackage

/// Notices that the other side of a connected socket went away, and reads nothing of it.
package final class HangUpWatch: Sendable {
    // The socket's owner may close it at any time.
    private let copy: CInt

    /// Watches the socket `descriptor`. Throws what the system failed with: `EBADF`, `EMFILE`.
    package init(on descriptor: CInt) throws(SystemFailure) {
        copy = try retrying("fcntl(F_DUPFD_CLOEXEC)") { clinux_duplicate(descriptor, 3) }
    }

    deinit { close(copy) }

    /// Waits until the other side is gone, `event` is woken or `duration` is over, `nil` for ever (`poll(2)`, which tells of
    /// `POLLHUP` unasked). Whether it is gone.
    package func wait(orWake event: WakeEvent, atMost duration: Duration? = nil) -> Bool {
        let deadline = duration.map { Deadline(after: $0) }
        return event.wait(
            for: copy, events: 0, milliseconds: InputSource.milliseconds(until: deadline))
    }
}
