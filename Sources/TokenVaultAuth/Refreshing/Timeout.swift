/// The end of a wait for an answer.
package enum Timeout {
    /// How late a wakeup may be before the process is assumed to have been suspended.
    static let lateness: Duration = .seconds(1)
    /// The additional wait after a suspension.
    static let more: Duration = .seconds(1)

    /// Returns after `limit`. After a suspension of the process or the machine, the time is over although an
    /// unread answer may be there. In that case waits for `more` as well. Throws `CancellationError`.
    package static func end(
        after limit: Duration, more: Duration = more, now: () -> ContinuousClock.Instant = { .now },
        sleep: (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) async throws {
        let begun = now()
        try await sleep(limit)
        if now() - begun > limit + lateness { try await sleep(more) }
    }
}
