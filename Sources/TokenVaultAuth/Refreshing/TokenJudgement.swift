internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Whether tokens are good at a time.
struct TokenJudgement: Sendable {
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
    func satisfies(_ demand: TokenDemand, _ record: SessionRecord) -> Bool {
        demand.session == record.session && demand.refused != record.tokens.accessSecret && isFresh(record)
    }

    /// Whether the access token is good for longer than the buffer.
    func isFresh(_ record: SessionRecord) -> Bool { freshUntil(record).map { now < $0 } ?? true }

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

    /// Whether the refresh token is worth sending.
    func isRefreshable(_ record: SessionRecord) -> Bool {
        guard record.tokens.refreshSecret != nil else { return false }
        guard let end = record.tokens.refreshTokenExpiry else { return true }
        // A clock that seems to have been set back does not keep a token from being sent: the server knows better.
        return now < end.addingTimeInterval(max(0, shift) - configuration.refreshTokenBuffer.inSeconds)
    }

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
