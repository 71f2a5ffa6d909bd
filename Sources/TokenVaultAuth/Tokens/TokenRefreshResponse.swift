internal import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The token endpoint's response to a refresh (RFC 6749 section 6). Printing it shows no token.
public struct TokenRefreshResponse: Sendable {
    /// The new access token.
    public var accessToken: String
    /// The lifetime of the access token in seconds (`expires_in`); `nil` when the server did not say.
    public var expiresIn: Double?
    /// Whether the access token's lifetime in the response is unusable, such as 0.
    public var hasUnusableLifetime = false
    /// The new refresh token; `nil` when the old one stays valid (RFC 6749 section 6).
    public var refreshToken: String?
    /// The lifetime of the refresh token in seconds; `nil` when the server did not say.
    public var refreshTokenExpiresIn: Double?
    /// The new ID token; `nil` when the old one stays.
    public var idToken: String?
    /// The type of the access token; `nil` when it stays the same.
    public var tokenType: String?
    /// The granted scopes, separated by spaces; `nil` when they stay the same.
    public var scope: String?
    /// The time of the response's `Date` header, for the difference between the server's clock and this
    /// machine's clock.
    public var serverDate: Date?

    /// Creates a response.
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

extension TokenRefreshResponse: RedactedStringConvertible {}

extension TokenInfo {
    /// Returns these tokens after `response` to a request that was begun at `begun`. Keeps the values that
    /// the response leaves out. Lifetimes count from `begun`, so that a slow response makes no token last
    /// longer.
    func refreshed(by response: TokenRefreshResponse, begun: Date) -> TokenInfo {
        let rotated = response.refreshToken
        let refreshExpiry = response.refreshTokenExpiresIn.map { begun.addingTimeInterval($0) }
        var tokens = TokenInfo(
            access: Secret(utf8: response.accessToken),
            refresh: rotated.map { Secret(utf8: $0) } ?? refreshSecret,
            id: response.idToken.map { Secret(utf8: $0) } ?? idSecret,
            tokenType: response.tokenType ?? tokenType, scope: response.scope ?? scope,
            accessTokenExpiry: response.expiresIn.map { begun.addingTimeInterval($0) },
            // A rotated token without a lifetime has an unknown expiry; a kept token keeps its expiry.
            refreshTokenExpiry: refreshExpiry ?? (rotated == nil ? refreshTokenExpiry : nil))
        tokens.hasUnusableLifetime = response.hasUnusableLifetime
        tokens.clientScopes = clientScopes
        tokens.dpopKey = dpopKey
        return tokens
    }
}

extension TokenInfo {
    /// Throws `malformed` unless the tokens, their type and scopes can be put into a header. Also throws it for a token
    /// or key that is too long.
    func requireUsable() throws(TokenError) {
        func isUsable(_ token: Secret) -> Bool {
            token.count <= TokenRefreshResponse.longestToken && token.isTokenText
        }
        guard isUsable(accessSecret) else { throw .malformed("the access token") }
        guard refreshSecret.map(isUsable) ?? true else { throw .malformed("the refresh token") }
        guard idSecret.map(isUsable) ?? true else { throw .malformed("the ID token") }
        guard TokenRefreshResponse.isType(tokenType) else { throw .malformed("the token's type") }
        guard scope.map(TokenRefreshResponse.isScope) ?? true else { throw .malformed("the scope") }
        guard dpopKey.map({ $0.count <= 16 << 10 && $0.unprotectedText() != nil }) ?? true else {
            throw .malformed("the key of the tokens")
        }
    }
}

extension TokenRefreshResponse {
    /// The longest accepted token, in bytes. The header limit of any server is far lower.
    package static let longestToken = 128 << 10

    /// Whether a token's type can be put into a header.
    static func isType(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    /// Whether scopes are visible ASCII and spaces (RFC 6749 section 3.3), and fit into a record.
    static func isScope(_ text: String) -> Bool {
        text.utf8.count <= 16 << 10 && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }

    /// Returns this response without unusable parts. A lifetime that is not above zero is dropped.
    ///
    /// Throws `unusable(200)` when the tokens cannot be used at all. The server reported success, so the refresh token may
    /// be used up. The refresh does not send it again.
    func usable() throws(RefreshFailure) -> TokenRefreshResponse {
        func isUsable(_ token: String) -> Bool {
            token.utf8.count <= Self.longestToken && Secret(utf8: token).isTokenText
        }
        func lifetime(_ seconds: Double?) -> Double? {
            seconds.flatMap { $0 > 0 ? min($0, 3_155_760_000) : nil }
        }
        var response = self
        if response.refreshToken?.isEmpty == true { response.refreshToken = nil }
        guard isUsable(accessToken), response.refreshToken.map(isUsable) ?? true else {
            throw RefreshFailure(.unusable(200))
        }
        response.expiresIn = lifetime(expiresIn)
        response.hasUnusableLifetime = hasUnusableLifetime || expiresIn != nil && response.expiresIn == nil
        response.refreshTokenExpiresIn = lifetime(refreshTokenExpiresIn)
        response.idToken = idToken.flatMap { isUsable($0) ? $0 : nil }
        response.scope = scope.flatMap { Self.isScope($0) ? $0 : nil }
        response.tokenType = tokenType.flatMap { Self.isType($0) ? $0 : nil }
        response.serverDate = serverDate?.wholeSeconds
        return response
    }
}
