internal import Glibc

/// A point in time that waiting may not pass, on the monotonic clock.
package struct Deadline: Sendable {
    private let instant: ContinuousClock.Instant

    /// `duration` from now.
    package init(after duration: Duration) { instant = .now.advanced(by: duration) }

    /// Whether the time has come.
    package var hasPassed: Bool { .now >= instant }

    /// What is left, never below zero.
    package var remaining: Duration { max(.zero, ContinuousClock.now.duration(to: instant)) }
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
        let left = deadline.remaining.components
        let nanoseconds =
            left.seconds > 0 ? pause : min(pause, UInt64(left.attoseconds) / 1_000_000_000)
        var request = timespec(tv_sec: 0, tv_nsec: Int(nanoseconds))
        nanosleep(&request, nil)
        pause = min(pause * 2, longest)
        return true
    }
}
