internal import CLinux
internal import Glibc

/// A point in time that waiting may not pass, on the clock that goes on while the machine is suspended
/// (`clock_gettime(CLOCK_BOOTTIME)`).
///
/// Not a `ContinuousClock.Instant`: how large that is comes out when the program runs, and with it the layout of every type
/// that has one in it, which costs a short command more than what it does.
package struct Deadline: Sendable {
    /// Nanoseconds since the machine started.
    private let end: UInt64

    /// `duration` from now.
    package init(after duration: Duration) {
        let (sum, isFarAway) = SleepingAlarm.now.addingReportingOverflow(duration.nanoseconds)
        end = isFarAway ? .max : sum
    }

    /// Whether the time has come.
    package var hasPassed: Bool { SleepingAlarm.now >= end }

    /// What is left, never below zero.
    package var remaining: Duration {
        let now = SleepingAlarm.now
        return .nanoseconds(now < end ? Int64(clamping: end - now) : 0)
    }

    /// For how long it has passed, never below zero.
    package var lateness: Duration {
        let now = SleepingAlarm.now
        return .nanoseconds(now > end ? Int64(clamping: now - end) : 0)
    }
}

extension Duration {
    /// In whole nanoseconds: zero for what is less than none, and the most there are for what is longer.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (whole, isTooLong) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isLonger) = whole.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
        return isTooLong || isLonger ? .max : sum
    }
}

/// Waits on something that can only be asked, with growing pauses and a bound.
package struct BackOff {
    private var pause: UInt64 = 20_000
    private let longest: UInt64 = 5_000_000

    package init() {}

    /// Pauses 20 µs the first time, twice as long each next time, 5 ms at most, and never past
    /// `deadline`. False when the deadline has passed.
    package mutating func wait(until deadline: Deadline) -> Bool {
        if deadline.hasPassed { return false }
        var request = timespec(tv_sec: 0, tv_nsec: Int(min(pause, deadline.remaining.nanoseconds)))
        nanosleep(&request, nil)
        pause = min(pause * 2, longest)
        return true
    }
}
