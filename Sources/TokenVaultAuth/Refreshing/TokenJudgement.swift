internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Whether tokens are good at a time.
struct TokenJudgement: Sendable {
    let configuration: TokenManager.Configuration
    let now: Date
    /// The server's clock less this machine's, as it was seen last; `nil` when it was not seen since the tokens came.
    var skew: Double?

    init(_ configuration: TokenManager.Configuration, at now: Date, skew: Double? = nil) {
        self.configuration = configuration
        self.now = now
        self.skew = skew
    }

    /// Whether the access token of `record` is what `demand` asks for.
    func satisfies(_ demand: TokenDemand, _ record: SessionRecord) -> Bool {
        if let session = demand.session, session != record.session { return false }
        if let refused = demand.refused { return refused != record.tokens.accessSecret }
        return isFresh(record)
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
        return now < shifted(end, record).addingTimeInterval(-configuration.refreshTokenBuffer.inSeconds)
    }

    private func end(_ record: SessionRecord) -> Date? {
        record.tokens.accessTokenExpiry.map { shifted($0, record) }
    }

    /// A time on this machine's clock as it was when the tokens came, on the clock as it is now. The server's clock is
    /// what both have in common; without a look at it since, the clock counts as unchanged.
    private func shifted(_ date: Date, _ record: SessionRecord) -> Date {
        guard let skew, let then = record.clockSkew else { return date }
        // A header tells whole seconds, and the way takes its time: less than that is no difference.
        let moved = then - skew
        return abs(moved) < 2 ? date : date.addingTimeInterval(moved)
    }
}

extension Duration {
    /// The duration in seconds.
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1_000_000_000_000_000_000
    }
}
