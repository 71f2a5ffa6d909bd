#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What others began and did not end, as far as one refresh has seen.
struct ForeignIntents {
    let hold: LeaseHold
    /// The names of those that are not foreign.
    var own = Set<String>()
    private var seen: (name: String, since: ContinuousClock.Instant)?
    private var pause = Duration.milliseconds(10)

    init(hold: LeaseHold) { self.hold = hold }

    /// An intent that is older than that, by whatever clock, is nobody's any more, in seconds.
    private static let longest = 3_600.0

    /// Waits a little if whoever stored `intent` may still be waiting for an answer. False when they are not.
    ///
    /// One that was stored under the lock which is held here is that of a process that is gone. Another one is waited for as
    /// long as its owner would, counted from when it was first seen here: clocks of two machines are not compared but for
    /// the hour.
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
