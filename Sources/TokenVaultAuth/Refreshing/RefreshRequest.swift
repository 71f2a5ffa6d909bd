public import TokenVault

/// A request that a refresh provider sends to the token endpoint. Printing it shows no token.
public struct RefreshRequest: Sendable {
    /// The account that the session is stored under.
    public let account: String
    /// The refresh token; empty for client credentials (``TokenInfo/isOfClient``).
    public let refreshToken: String
    /// The scopes of the session, separated by spaces; `nil` when they are not known. A request with a refresh
    /// token may leave them out.
    public let scope: String?
    /// The ID token of the session; `nil` when it has none. A new ID token has to be for the same user.
    public internal(set) var idToken: String?
    /// The provider and the client that the token was issued to; `nil` when the sign-in did not say.
    package internal(set) var source: TokenSource?
    /// The subject of the ID token at the sign-in; `nil` when it had none, or the sign-in did not say.
    package internal(set) var subject: String?
    /// The private key that the session's tokens are bound to, in PEM (RFC 9449); `nil` for bearer tokens.
    public internal(set) var dpopKey: Secret?
    /// Whether an earlier request with this token may have reached the server without its answer arriving.
    public let isRetryOfUnknownOutcome: Bool
}

extension RefreshRequest: RedactedStringConvertible {}

/// Sends a refresh token to the token endpoint and returns the response. Throws ``RefreshFailure``; any other
/// error counts as an unknown outcome. It runs in a task that is cancelled after
/// ``TokenManager/Configuration/refreshTimeout``. A response that arrives after the cancellation is still
/// used.
public typealias RefreshRequestProvider = @Sendable (RefreshRequest) async throws -> TokenRefreshResponse

/// Revokes tokens at the server (RFC 7009). Throws ``RefreshFailure``.
public typealias RevokeRequestProvider = @Sendable (TokenInfo) async throws -> Void

extension RefreshRequest {
    /// Creates a request of another process's manager, for the process that sends it.
    package init(
        forwarding refreshToken: String, scope: String?, idToken: String?, subject: String? = nil,
        dpopKey: Secret? = nil, isRetryOfUnknownOutcome: Bool
    ) {
        self.init(
            account: "", refreshToken: refreshToken, scope: scope, idToken: idToken, subject: subject,
            dpopKey: dpopKey, isRetryOfUnknownOutcome: isRetryOfUnknownOutcome)
    }
}
