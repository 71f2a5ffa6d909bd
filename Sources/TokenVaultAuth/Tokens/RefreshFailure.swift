#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// Why a request to the token endpoint gave no tokens: what a refresh provider throws.
///
/// What is done next depends on whether the server may have taken the refresh token: with rotation, a token that was
/// taken is gone, and its answer with it. Any other error that a provider throws counts as ``Kind/interrupted``.
public struct RefreshFailure: Error, Sendable, Equatable {
    /// What happened.
    public enum Kind: Sendable, Equatable {
        /// The server refused the refresh token itself (`invalid_grant`): the session is over.
        case invalidGrant
        /// The server refused the request for another reason, with this `error` code of RFC 6749 section 5.2, such as
        /// `invalid_client`. The refresh token is as good as before.
        case refused(String)
        /// The server asks to come back later (429, or 503 with `Retry-After`). The request was not carried out.
        case throttled
        /// The request never reached the server: the connection was refused, the name not found.
        case notSent
        /// The server failed (5xx). Whether it took the token is not known.
        case serverError(Int)
        /// An answer came, with this status, that is of no use: none of a token endpoint's, or a success without an access
        /// token that can be used. After a success the token is gone, most likely.
        case unusable(Int)
        /// The connection broke. Whether the server took the token is not known.
        case interrupted
        /// The request was sent, or may have been, and no answer came in time. Whether the server took the token is not
        /// known, and it may be at it still.
        case timedOut
    }

    /// What happened.
    public let kind: Kind
    /// When the server wants to be asked again at the earliest (`Retry-After`); `nil` when it did not say.
    public var retryAfter: Date?
    /// The `Date` header of the answer, if there was one.
    public var serverDate: Date?

    /// Whether the server gave tokens that are not used and could not be told that they are over.
    package var leavesTokens = false
    /// Whether a sign-in was asked for with what a person agreed to, or may have, and the answer was lost: the server may have
    /// a session that nobody has.
    package var mayLeaveSession = false
    /// Whether there was no connection since none could be made that is encrypted: the certificate is not trusted, or another's.
    package var isNotTrusted = false

    /// A failure. Of a code only one that is a word of lower-case letters and underscores is kept: no text of the server's.
    public init(_ kind: Kind, retryAfter: Date? = nil, serverDate: Date? = nil) {
        if case .refused(let code) = kind { self.kind = .refused(Self.word(code)) } else { self.kind = kind }
        self.retryAfter = retryAfter
        self.serverDate = serverDate
    }

    /// Whether the server may have taken the refresh token, and given another that never arrived.
    public var leavesOutcomeUnknown: Bool {
        switch kind {
        case .serverError, .unusable, .interrupted, .timedOut: true
        // The server said yes, and its answer was for somebody else.
        case .refused("id_token_mismatch"): true
        case .invalidGrant, .refused, .throttled, .notSent: false
        }
    }

    /// Whether the request was sent, or may have been, and no answer to it came, not to the gateway before the server either
    /// (502 and 504, RFC 9110 sections 15.6.3 and 15.6.5).
    package var isLost: Bool { kind == .interrupted || kind == .serverError(502) || isLate }

    /// Whether the server may be at it still.
    package var isLate: Bool { kind == .timedOut || kind == .serverError(504) }

    /// Whether the same request may succeed later. After a success that is of no use it is not sent again at once: that would
    /// be a second use of a token that the server has taken.
    public var isTemporary: Bool {
        switch kind {
        case .throttled, .notSent, .serverError, .interrupted, .timedOut: true
        case .unusable(let status): !(200...299).contains(status)
        case .invalidGrant, .refused: false
        }
    }
}

extension RefreshFailure: CustomStringConvertible {
    /// What happened, in a few words.
    public var description: String {
        leavesTokens ? "\(reason); what it gave meanwhile could not be revoked" : reason
    }

    /// The description, without what could not be revoked.
    package var reason: String {
        switch kind {
        case .invalidGrant: "the server does not accept the refresh token any more (invalid_grant)"
        case .refused("id_token_mismatch"):
            "the server's answer was for somebody else than is signed in (id_token_mismatch)"
        case .refused(let code): "the server refused the request (\(code))"
        case .throttled: "the server asks to come back later"
        case .notSent where isNotTrusted:
            "no encrypted connection can be made: the server's certificate is not trusted here or is another's, or it speaks no TLS"
        case .notSent: "the server cannot be reached"
        case .serverError(let status): "the server failed (\(status))"
        case .unusable(let status) where (200...299).contains(status):
            "the server gave an answer that cannot be used"
        case .unusable(let status): "the server gave an answer that cannot be used (\(status))"
        case .interrupted: "the connection broke before there was an answer"
        case .timedOut: "no answer came in time"
        }
    }

    private static func word(_ code: String) -> String {
        let isWord =
            code.utf8.count <= 40
            && code.utf8.allSatisfy {
                $0 == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
            }
        return isWord && !code.isEmpty ? code : "other"
    }
}
