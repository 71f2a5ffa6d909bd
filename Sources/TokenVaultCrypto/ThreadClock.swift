internal import Glibc

/// The time that processors have spent on the calling thread (`clock_gettime`, `CLOCK_THREAD_CPUTIME_ID`).
struct ThreadClock {
    private let time: Duration

    static var now: ThreadClock {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return ThreadClock(time: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec))
    }

    func duration(to later: ThreadClock) -> Duration { later.time - time }
}
