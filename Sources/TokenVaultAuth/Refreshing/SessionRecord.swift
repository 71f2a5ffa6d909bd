internal import TokenVault
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What is stored for an account: one item, so that every change of it is one atomic compare-and-store.
struct SessionRecord: Codable, Sendable, Equatable {
    /// The version of this shape.
    static let currentVersion = 1

    var version = SessionRecord.currentVersion
    /// Which sign-in this is. A refresh keeps it; another sign-in has another.
    var session: String
    var tokens: TokenInfo
    /// Who it is of, as the sign-in told.
    var user: AuthUser?
    /// Which client of which provider the tokens were given to, where the program that signed in says so.
    var source: TokenSource?
    /// When the tokens were got, in seconds since 1970 on this machine's clock.
    var obtained: Double
    /// Whether it is of a guest that no server knows of: its token is none.
    var isWithoutTokens: Bool { isLocalGuest ?? false }
    var isLocalGuest: Bool?
    /// A refresh that was begun, and whose outcome is not stored yet.
    var intent: RefreshIntent?
    /// Until when the server is not asked again.
    var pause: RefreshPause?

    /// A new session with `tokens`.
    static func beginning(
        _ tokens: TokenInfo, user: AuthUser? = nil, source: TokenSource? = nil, at now: Date
    ) -> SessionRecord {
        SessionRecord(
            session: Random.name(), tokens: tokens, user: user, source: source,
            obtained: now.timeIntervalSince1970)
    }

    /// A guest's session that no server knows of.
    static func guest(_ user: AuthUser, at now: Date) -> SessionRecord {
        var record = beginning(TokenInfo(accessToken: "none"), user: user, at: now)
        record.isLocalGuest = true
        return record
    }
}

/// Says that a refresh token may have been used: stored before the request is sent, gone when its outcome is stored.
struct RefreshIntent: Codable, Sendable, Equatable {
    /// Whose it is.
    var name = Random.name()
    /// When it was stored, in seconds since 1970 by the clock of who did.
    var begun: Double
    /// For how long at most the one who stored it waits for the answer, in seconds.
    var seconds: Double
    /// The lock under which it was stored; `nil` without one.
    var lock: String?
    /// Whether that one has given up: the outcome is unknown, and the token may be tried again.
    var isOver = false
    /// The last request whose answer was lost; `nil` when there was none.
    var lost: LostRequest?
}

/// A request that was sent, or may have been, and whose answer nobody has.
struct LostRequest: Codable, Sendable, Equatable {
    /// When it was given up, in seconds since 1970 by the clock of who did.
    var end: Double
    /// How many there were in a row, this one included.
    var count: Int
    /// Whether its time was over, so that the server may be at it still; otherwise the connection broke.
    var isLate: Bool
}

/// When the next request may be sent after one that failed.
struct RefreshPause: Codable, Sendable, Equatable {
    /// How many failed in a row.
    var failures: Int
    /// The earliest time, in seconds since 1970.
    var until: Double
    /// When the last one failed, by the same clock.
    var begun: Double?
}

/// A record as the storage has it now.
struct StoredSession: Sendable, Equatable {
    var record: SessionRecord
    var generation: Generation
}

extension Random {
    /// 128 unpredictable bits as text.
    static func name() -> String { hexadecimal(bytes(16)) }

    static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
