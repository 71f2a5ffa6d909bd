internal import CLinux
internal import Glibc

/// The processor time of the calling thread (`clock_gettime`, `CLOCK_THREAD_CPUTIME_ID`).
package struct ThreadClock: Sendable {
    private let time: Duration

    /// The processor time until now.
    package static var now: ThreadClock {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return ThreadClock(time: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec))
    }

    /// Returns the time from this point to `later`, both on one thread.
    package func duration(to later: ThreadClock) -> Duration { later.time - time }
}
