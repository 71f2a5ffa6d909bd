internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Whether tokens are good at a time.
struct TokenExpiryPolicy: Sendable {
    let configuration: TokenManager.Configuration
    let now: Date
    /// How far this machine's clock was set ahead since the tokens came, in seconds.
    let shift: Double

    init(_ configuration: TokenManager.Configuration, at now: Date, shift: Double) {
        self.configuration = configuration
        self.now = now
        self.shift = shift
    }

    /// Whether the access token of `record` is what `demand` asks for.
    func satisfies(_ demand: TokenRequirement, _ record: SessionRecord) -> Bool {
        demand.session == record.session && demand.refused != record.tokens.accessSecret && isFresh(record)
    }

    /// Whether the access token is good for longer than the buffer, as far as the clock can be believed.
    func isFresh(_ record: SessionRecord) -> Bool {
        if let since = freshSince(record), now < since { return false }
        return freshUntil(record).map { now < $0 } ?? true
    }

    /// Whether the access token is still good.
    func isUsable(_ record: SessionRecord) -> Bool { end(record).map { now < $0 } ?? true }

    /// Until when the access token is good for longer than the buffer; `nil` for ever. The buffer is at most half of its
    /// lifetime: a short-lived token is not renewed at every call.
    func freshUntil(_ record: SessionRecord) -> Date? {
        end(record).map { end in
            let lifetime =
                record.tokens.accessTokenExpiry.map { $0.timeIntervalSince1970 - record.obtained } ?? 0
            let buffer = min(configuration.accessTokenRefreshBuffer.inSeconds, max(0, lifetime / 2))
            return end.addingTimeInterval(-buffer)
        }
    }

    /// Whether the refresh token is worth sending. What is known of its end keeps it back only where the program says how long
    /// before that: the server knows better.
    func isRefreshable(_ record: SessionRecord) -> Bool {
        guard record.tokens.refreshSecret != nil else { return false }
        let buffer = configuration.refreshTokenBuffer
        guard buffer > .zero, let end = record.tokens.refreshTokenExpiry else { return true }
        return now < end.addingTimeInterval(max(0, shift) - buffer.inSeconds)
    }

    /// From when on the access token may be taken for fresh; `nil` for ever. Tokens that were got in the future are of a clock
    /// that was ahead: when they end is not known, and if they can be renewed they are.
    func freshSince(_ record: SessionRecord) -> Date? {
        guard record.tokens.refreshSecret != nil, record.tokens.accessTokenExpiry != nil else { return nil }
        return Date(timeIntervalSince1970: record.obtained + shift - Self.clockLeeway)
    }

    /// By how much two clocks may differ that are right, in seconds.
    static let clockLeeway = 5.0

    private func end(_ record: SessionRecord) -> Date? {
        record.tokens.accessTokenExpiry?.addingTimeInterval(shift)
    }
}

extension Duration {
    /// The duration in seconds.
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1_000_000_000_000_000_000
    }
}
