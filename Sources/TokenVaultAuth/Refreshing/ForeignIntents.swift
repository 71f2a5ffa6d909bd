#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The unfinished intents of other processes, as far as one refresh has seen.
struct ForeignIntents {
    let hold: LeaseHold
    /// The names of the intents that this refresh stored itself.
    var own = Set<String>()
    private var seen: (name: String, since: ContinuousClock.Instant)?
    private var pause = Duration.milliseconds(10)

    init(hold: LeaseHold) { self.hold = hold }

    /// The age, by any clock, beyond which an intent is ignored, in seconds.
    private static let longest = 3_600.0

    /// Waits a little if the process that stored `intent` may still be waiting for an answer; returns false
    /// if it is not.
    ///
    /// An intent stored under the lock that is held here belongs to a process that has ended. Any other
    /// intent is waited for as long as its owner would wait, counted from when it was first seen here. The
    /// clocks of two machines are compared only for `longest`.
    mutating func wait(for intent: RefreshIntent, now: Date) async -> Bool {
        if intent.isOver || own.contains(intent.name) { return false }
        if let lock = intent.lock, lock == hold.name { return false }
        let age = now.timeIntervalSince1970 - intent.begun
        if age.isNaN || age > Self.longest { return false }
        if seen?.name != intent.name { seen = (intent.name, .now) }
        let seconds = min(max(intent.seconds.isNaN ? 0 : intent.seconds, 0), 600)
        guard let seen, ContinuousClock.now - seen.since < .seconds(seconds) else { return false }
        try? await Task.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(500))
        return true
    }
}
