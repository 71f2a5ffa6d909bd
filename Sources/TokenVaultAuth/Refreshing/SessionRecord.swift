internal import TokenVault
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The stored record of an account: one item, so that every change is one atomic compare-and-store.
struct SessionRecord: Codable, Sendable, Equatable {
    /// The versions of this format. A record with a key has version 2, because an older program would drop the key.
    static let versions = 1...2

    var version = 1
    /// The identifier of the sign-in. A refresh keeps it; another sign-in has another.
    var session: String
    var tokens: TokenInfo
    /// The user, as given at sign-in.
    var user: AuthUser?
    /// The provider and the client that the tokens were issued to, if the sign-in said so.
    var source: TokenSource?
    /// The time when the tokens were obtained, in seconds since 1970 by this machine's clock.
    var obtained: Double
    /// Whether the session belongs to a guest that no server knows. The session then has no usable token.
    var isWithoutTokens: Bool { isLocalGuest ?? false }
    var isLocalGuest: Bool?
    /// A refresh that was begun, and whose outcome is not stored yet.
    var intent: RefreshIntent?
    /// The pause before the server is asked again.
    var pause: RefreshPause?

    /// Returns a new session with `tokens`.
    static func beginning(
        _ tokens: TokenInfo, user: AuthUser? = nil, source: TokenSource? = nil, at now: Date
    ) -> SessionRecord {
        SessionRecord(
            version: tokens.dpopKey == nil ? 1 : 2, session: Random.name(), tokens: tokens, user: user,
            source: source,
            obtained: now.timeIntervalSince1970)
    }

    /// Returns a guest session, which no server knows.
    static func guest(_ user: AuthUser, at now: Date) -> SessionRecord {
        var record = beginning(TokenInfo(accessToken: "none"), user: user, at: now)
        record.isLocalGuest = true
        return record
    }
}

/// A note that a refresh token may have been used. Stored before the request is sent, removed when its
/// outcome is stored.
struct RefreshIntent: Codable, Sendable, Equatable {
    /// The name of the intent, unique to its owner.
    var name = Random.name()
    /// The time when the intent was stored, in seconds since 1970 by its owner's clock.
    var begun: Double
    /// The longest time that the owner waits for the answer, in seconds.
    var seconds: Double
    /// The lock under which the intent was stored; `nil` without one.
    var lock: String?
    /// Whether the owner has given up: the outcome is unknown, and the token may be tried again.
    var isOver = false
    /// The last request whose answer was lost; `nil` when there was none.
    var lost: LostRequest?
}

/// A request that was or may have been sent, and whose answer was lost.
struct LostRequest: Codable, Sendable, Equatable {
    /// The time when the owner gave up, in seconds since 1970 by the owner's clock.
    var end: Double
    /// The number of lost requests in a row, including this one.
    var count: Int
    /// Whether the request timed out, so that the server may still be processing it. Otherwise the connection
    /// broke.
    var isLate: Bool
}

/// The pause after a failed request.
struct RefreshPause: Codable, Sendable, Equatable {
    /// The number of failures in a row.
    var failures: Int
    /// The earliest time of the next request, in seconds since 1970.
    var until: Double
    /// The time of the last failure, by the same clock.
    var begun: Double?
}

/// A record in its present stored form.
struct StoredSession: Sendable, Equatable {
    var record: SessionRecord
    var generation: Generation
}

extension Random {
    /// Returns 128 unpredictable bits as text.
    static func name() -> String { hexadecimal(bytes(16)) }

    static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
