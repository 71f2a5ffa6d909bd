#if OAuth
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date on the server's clock.
enum RetryAfter {
    /// The longest pause that a server can ask for, in seconds: a day.
    static let longest = 86_400.0

    /// Returns the time of the next attempt, by the clock of `now`; `nil` when `text` is neither form.
    static func time(_ text: String, now: Date, serverDate: Date?) -> Date? {
        let seconds: Double
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            seconds = Double(text) ?? longest
        } else if let date = HTTPDate.parse(text, now: now) {
            seconds = date.timeIntervalSince(serverDate ?? now)
        } else {
            return nil
        }
        return now.addingTimeInterval(min(max(seconds, 0), longest))
    }
}
#endif
