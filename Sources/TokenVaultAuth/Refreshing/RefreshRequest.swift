/// What a refresh provider is to send to the token endpoint. Printing it shows no token.
public struct RefreshRequest: Sendable {
    /// The account the session is stored under.
    public let account: String
    /// The refresh token to send.
    public let refreshToken: String
    /// The scopes the session has, separated by spaces; `nil` when they are not known. A request need not name them.
    public let scope: String?
    /// The ID token the session has; `nil` when it has none. A new one has to be of the same person.
    public internal(set) var idToken: String?
    /// Which client of which provider the token was given to; `nil` when whoever signed in did not say.
    package internal(set) var source: TokenSource?
    /// Whether an earlier request with this token may have reached the server and its answer was lost.
    public let isRetryOfUnknownOutcome: Bool
}

extension RefreshRequest: RedactedStringConvertible {}

/// Sends a refresh token to the token endpoint and returns what it answered. Throws ``RefreshFailure``; any other error
/// counts as one whose outcome is unknown. It is called in a task that is cancelled after
/// ``TokenManager/Configuration/refreshTimeout`` and waited for: an answer that comes late is not lost.
public typealias RefreshRequestProvider = @Sendable (RefreshRequest) async throws -> TokenRefreshResponse

/// Tells the server that the tokens are not to be accepted any more (RFC 7009). Throws ``RefreshFailure``.
public typealias RevokeRequestProvider = @Sendable (TokenInfo) async throws -> Void
