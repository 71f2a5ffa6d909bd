internal import CLinux
internal import Glibc
internal import SystemPackage

/// A clock that continues while the machine sleeps, with an alarm.
package protocol AlarmClock: AnyObject, Sendable {
    /// The time in nanoseconds since a fixed point.
    var now: UInt64 { get }
    /// Waits until ``now`` has reached `time`, or ``wake()`` is called.
    func wait(until time: UInt64)
    /// Ends the current wait, or the next one.
    func wake()
}

/// `CLOCK_BOOTTIME` and its `timerfd_create(2)`: an alarm that came due during suspend fires when the machine
/// wakes up.
package final class SleepingAlarm: AlarmClock {
    private let timer: CInt
    private let event: WakeEvent

    /// Creates an alarm. Throws system errors, such as `EMFILE` without descriptors.
    package init() throws(SystemFailure) {
        timer = try retrying("timerfd_create") { clinux_boot_timer() }
        do {
            event = try WakeEvent()
        } catch {
            close(timer)
            throw error
        }
    }

    deinit { close(timer) }

    /// `clock_gettime(CLOCK_BOOTTIME)`.
    package static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    package var now: UInt64 { Self.now }

    package func wait(until time: UInt64) {
        guard clinux_set_timer(timer, time) == 0 else { return }
        var count: UInt64 = 0
        if event.wait(for: timer) { _ = read(timer, &count, 8) }
    }

    package func wake() { event.wake() }
}
