internal import CLinux
internal import Glibc

/// A time limit for waiting, on the clock that continues while the machine is suspended
/// (`clock_gettime(CLOCK_BOOTTIME)`).
///
/// Not a `ContinuousClock.Instant`, because its size is only known at run time. So is then the layout of
/// every type that contains one, which costs a short command more than its own work.
package struct Deadline: Sendable {
    /// The time limit in nanoseconds since the machine started.
    private let end: UInt64

    /// Creates a deadline `duration` from now.
    package init(after duration: Duration) {
        let (sum, isFarAway) = SleepingAlarm.now.addingReportingOverflow(duration.nanoseconds)
        end = isFarAway ? .max : sum
    }

    /// Whether the deadline has passed.
    package var hasPassed: Bool { SleepingAlarm.now >= end }

    /// The remaining time, never below zero.
    package var remaining: Duration {
        let now = SleepingAlarm.now
        return .nanoseconds(now < end ? Int64(clamping: end - now) : 0)
    }

    /// The time since the deadline passed, never below zero.
    package var lateness: Duration {
        let now = SleepingAlarm.now
        return .nanoseconds(now > end ? Int64(clamping: now - end) : 0)
    }
}

extension Duration {
    /// The duration in whole nanoseconds, limited to the range of the type.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (whole, isTooLong) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isLonger) = whole.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
        return isTooLong || isLonger ? .max : sum
    }
}

/// Growing, bounded pauses for polling a condition.
package struct BackOff {
    private var pause: UInt64 = 20_000
    private let longest: UInt64 = 5_000_000

    package init() {}

    /// Pauses 20 µs the first time and twice as long each next time, up to 5 ms, and never past `deadline`.
    /// Returns false when the deadline has passed.
    package mutating func wait(until deadline: Deadline) -> Bool {
        if deadline.hasPassed { return false }
        var request = timespec(tv_sec: 0, tv_nsec: Int(min(pause, deadline.remaining.nanoseconds)))
        nanosleep(&request, nil)
        pause = min(pause * 2, longest)
        return true
    }
}
