/// The end of a wait for an answer.
package enum Timeout {
    /// By how much a wait may be over before it counts as one that nobody was there for.
    static let lateness: Duration = .seconds(1)
    /// How much longer is waited then.
    static let more: Duration = .seconds(1)

    /// Returns after `limit`. A process that was stopped meanwhile, or a machine that slept, finds its time over although an
    /// answer may be there that nobody has read: that is given `more`. Throws `CancellationError`.
    package static func end(
        after limit: Duration, more: Duration = more, now: () -> ContinuousClock.Instant = { .now },
        sleep: (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) async throws {
        let begun = now()
        try await sleep(limit)
        if now() - begun > limit + lateness { try await sleep(more) }
    }
}
