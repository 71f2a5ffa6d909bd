internal import CLinux
internal import Glibc
internal import SystemPackage

/// Ends the wait for a descriptor from another thread (`eventfd(2)`).
package final class WakeEvent: Sendable {
    package let descriptor: CInt

    /// Creates an event. Throws system errors: `EMFILE` without descriptors.
    package init() throws(SystemFailure) {
        descriptor = try retrying("eventfd") { clinux_event_descriptor() }
    }

    deinit { close(descriptor) }

    /// Ends the current wait, or the next one.
    package func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Waits until ``wake()`` is called, for at most `duration`.
    package func wait(atMost duration: Duration) {
        _ = wait(for: -1, milliseconds: InputSource.milliseconds(until: Deadline(after: duration)))
    }

    /// Waits until `other` can be read, ``wake()`` is called or the given milliseconds have passed, -1 for no
    /// limit (`poll(2)`). Returns whether `other` can be read.
    @discardableResult
    package func wait(for other: CInt, events: Int32 = POLLIN, milliseconds: CInt = -1) -> Bool {
        var descriptors = [
            pollfd(fd: other, events: Int16(events), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&descriptors, nfds_t(descriptors.count), milliseconds)
        if descriptors[1].revents != 0 {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
        return descriptors[0].revents != 0
    }
}
