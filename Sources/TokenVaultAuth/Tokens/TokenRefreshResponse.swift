internal import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// What the token endpoint answered to a refresh (RFC 6749 section 6). Printing it shows no token.
public struct TokenRefreshResponse: Sendable {
    /// The new access token.
    public var accessToken: String
    /// How long the access token is good for, in seconds (`expires_in`); `nil` when the server did not say.
    public var expiresIn: Double?
    /// The new refresh token; `nil` when the old one stays (RFC 6749 section 6).
    public var refreshToken: String?
    /// How long the refresh token is good for, in seconds; `nil` when the server did not say.
    public var refreshTokenExpiresIn: Double?
    /// A new ID token; `nil` when the old one stays.
    public var idToken: String?
    /// How the access token is presented; `nil` when that stays.
    public var tokenType: String?
    /// The scopes granted, separated by spaces; `nil` when they stay.
    public var scope: String?
    /// The `Date` header of the answer, for the difference between the server's clock and this machine's.
    public var serverDate: Date?

    /// An answer.
    public init(
        accessToken: String, expiresIn: Double? = nil, refreshToken: String? = nil,
        refreshTokenExpiresIn: Double? = nil, idToken: String? = nil, tokenType: String? = nil,
        scope: String? = nil, serverDate: Date? = nil
    ) {
        self.accessToken = accessToken
        self.expiresIn = expiresIn
        self.refreshToken = refreshToken
        self.refreshTokenExpiresIn = refreshTokenExpiresIn
        self.idToken = idToken
        self.tokenType = tokenType
        self.scope = scope
        self.serverDate = serverDate
    }
}

extension TokenRefreshResponse: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Says only what it is.
    public var description: String { "TokenRefreshResponse(<redacted>)" }
    /// As ``description``.
    public var debugDescription: String { description }
    /// Shows no children.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension TokenInfo {
    /// These tokens after `response` to a request that was begun at `begun`. What the answer leaves out stays; times
    /// count from when the request was begun, so that a slow answer makes no token last longer.
    func refreshed(by response: TokenRefreshResponse, begun: Date) -> TokenInfo {
        let rotated = response.refreshToken.flatMap { $0.isEmpty ? nil : $0 }
        let refreshExpiry = response.refreshTokenExpiresIn.map { begun.addingTimeInterval($0) }
        return TokenInfo(
            access: Secret(utf8: response.accessToken),
            refresh: rotated.map { Secret(utf8: $0) } ?? refreshSecret,
            id: response.idToken.map { Secret(utf8: $0) } ?? idSecret,
            tokenType: response.tokenType ?? tokenType, scope: response.scope ?? scope,
            accessTokenExpiry: response.expiresIn.map { begun.addingTimeInterval($0) },
            // A rotated token's end is unknown when it is not told; a kept one's stays.
            refreshTokenExpiry: refreshExpiry ?? (rotated == nil ? refreshTokenExpiry : nil))
    }
}
