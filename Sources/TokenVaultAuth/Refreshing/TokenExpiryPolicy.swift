internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Decides whether tokens are good at a time.
struct TokenExpiryPolicy: Sendable {
    let configuration: TokenManager.Configuration
    let now: Date
    /// How far this machine's clock was set ahead since the tokens arrived, in seconds.
    let shift: Double

    init(_ configuration: TokenManager.Configuration, at now: Date, shift: Double) {
        self.configuration = configuration
        self.now = now
        self.shift = shift
    }

    /// Whether the access token of `record` satisfies `demand`.
    func satisfies(_ demand: TokenRequirement, _ record: SessionRecord) -> Bool {
        demand.session == record.session && demand.refused != record.tokens.accessSecret && isFresh(record)
    }

    /// Whether the access token is good for longer than the buffer, as far as the clock can be trusted.
    func isFresh(_ record: SessionRecord) -> Bool {
        if let since = freshSince(record), now < since { return false }
        return freshUntil(record).map { now < $0 } ?? true
    }

    /// Whether the access token has not expired.
    func isUsable(_ record: SessionRecord) -> Bool { end(record).map { now < $0 } ?? true }

    /// Returns the time until which the access token is good for longer than the buffer; `nil` for no limit.
    /// The buffer is at most half of the token's lifetime, so that a short-lived token is not refreshed at
    /// every call.
    func freshUntil(_ record: SessionRecord) -> Date? {
        end(record).map { end in
            let lifetime =
                record.tokens.accessTokenExpiry.map { $0.timeIntervalSince1970 - record.obtained } ?? 0
            let buffer = min(configuration.accessTokenRefreshBuffer.inSeconds, max(0, lifetime / 2))
            return end.addingTimeInterval(-buffer)
        }
    }

    /// Whether the session can be renewed. A refresh token's stored expiry counts only if the program set a
    /// buffer, since the server's record is more reliable.
    func isRefreshable(_ record: SessionRecord) -> Bool {
        guard record.tokens.isRenewable else { return false }
        if record.tokens.isOfClient { return true }
        let buffer = configuration.refreshTokenBuffer
        guard buffer > .zero, let end = record.tokens.refreshTokenExpiry else { return true }
        return now < end.addingTimeInterval(max(0, shift) - buffer.inSeconds)
    }

    /// Returns the time from which the access token counts as fresh; `nil` for no limit. Tokens obtained in
    /// the future come from a clock that was ahead. Their expiry is not known, so they are refreshed if
    /// possible.
    func freshSince(_ record: SessionRecord) -> Date? {
        guard record.tokens.isRenewable, record.tokens.accessTokenExpiry != nil else { return nil }
        return Date(timeIntervalSince1970: record.obtained + shift - Self.clockLeeway)
    }

    /// The largest difference between two correct clocks, in seconds.
    static let clockLeeway = 5.0

    private func end(_ record: SessionRecord) -> Date? {
        record.tokens.accessTokenExpiry?.addingTimeInterval(shift)
    }
}

extension Duration {
    /// The duration in seconds.
    package var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1_000_000_000_000_000_000
    }
}
