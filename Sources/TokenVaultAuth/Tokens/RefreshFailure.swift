#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The reason that a request to the token endpoint gave no tokens, as a refresh provider throws it.
///
/// The next step depends on whether the server may have taken the refresh token. With rotation, a taken token
/// is used up, and the new one is lost with the answer. Any other error that a provider throws counts as
/// ``Kind/interrupted``.
public struct RefreshFailure: Error, Sendable, Equatable {
    /// The kinds of failure.
    public enum Kind: Sendable, Equatable {
        /// The server rejected the refresh token itself (`invalid_grant`): the session is over.
        case invalidGrant
        /// The server rejected the request for another reason, with this `error` code of RFC 6749 section
        /// 5.2, such as `invalid_client`. The refresh token is as good as before.
        case refused(String)
        /// The server asks to come back later (429, or 503 with `Retry-After`). It did not process the
        /// request.
        case throttled
        /// The request never reached the server: the connection was refused, or the name was not found.
        case notSent
        /// The server failed (5xx). It is not known whether the server took the token.
        case serverError(Int)
        /// An unusable response with this status: not a token endpoint's response, or a success without a
        /// usable access token. After a success the token is most likely used up.
        case unusable(Int)
        /// The connection broke. It is not known whether the server took the token.
        case interrupted
        /// The request was or may have been sent, and no answer came in time. It is not known whether the
        /// server took the token, and the server may still be processing the request.
        case timedOut
    }

    /// The kind of failure.
    public let kind: Kind
    /// The earliest time at which the server accepts another request (`Retry-After`); `nil` when the server
    /// did not say.
    public var retryAfter: Date?
    /// The time of the response's `Date` header; `nil` if there was none.
    public var serverDate: Date?

    /// Whether the server issued tokens that are not used and that could not be revoked.
    package var leavesTokens = false
    /// Whether a sign-in used, or may have used, the user's grant, and the answer was lost. The server may
    /// have a session whose tokens were lost.
    package var mayLeaveSession = false
    /// Whether no encrypted connection could be made: the certificate is not trusted, or belongs to another
    /// host.
    package var isNotTrusted = false

    /// Creates a failure. An error code is kept only if it is a word of lower-case letters and underscores,
    /// so that no server text is shown.
    public init(_ kind: Kind, retryAfter: Date? = nil, serverDate: Date? = nil) {
        if case .refused(let code) = kind { self.kind = .refused(Self.word(code)) } else { self.kind = kind }
        self.retryAfter = retryAfter
        self.serverDate = serverDate
    }

    /// Whether the server may have taken the refresh token, and issued a new token that never arrived.
    public var leavesOutcomeUnknown: Bool {
        switch kind {
        case .serverError, .unusable, .interrupted, .timedOut: true
        // The server accepted the token, and answered for another user.
        case .refused("id_token_mismatch"): true
        case .invalidGrant, .refused, .throttled, .notSent: false
        }
    }

    /// Whether the request was or may have been sent, without an answer from the server. A gateway's answer
    /// does not count (502 and 504, RFC 9110 sections 15.6.3 and 15.6.5).
    package var isLost: Bool { kind == .interrupted || kind == .serverError(502) || isLate }

    /// Whether the server may still be processing the request.
    package var isLate: Bool { kind == .timedOut || kind == .serverError(504) }

    /// Whether the same request may succeed later. Excludes an unusable success: the server has taken the
    /// token, so sending it again would be a second use.
    public var isTemporary: Bool {
        switch kind {
        case .throttled, .notSent, .serverError, .interrupted, .timedOut: true
        case .unusable(let status): !(200...299).contains(status)
        case .invalidGrant, .refused: false
        }
    }
}

extension RefreshFailure: CustomStringConvertible {
    /// The failure in a few words.
    public var description: String {
        leavesTokens ? "\(reason); the tokens that it issued meanwhile could not be revoked" : reason
    }

    /// The description, without the note about tokens that could not be revoked.
    package var reason: String {
        switch kind {
        case .invalidGrant: "the server no longer accepts the refresh token (invalid_grant)"
        case .refused("id_token_mismatch"):
            "the server's answer names another user than the signed-in one (id_token_mismatch)"
        case .refused(let code): "the server refused the request (\(code))"
        case .throttled: "the server asks the client to retry later"
        case .notSent where isNotTrusted:
            "no encrypted connection: the server's certificate is not trusted or names another host, or the server has no TLS"
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
