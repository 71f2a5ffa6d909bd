public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The tokens of one session, as issued by a token endpoint (RFC 6749 section 5.1, OpenID Connect Core
/// section 3.1.3.3).
///
/// The tokens are in memory that is wiped when the last copy is released. The properties that return them as
/// text create strings that are not wiped. Printing, interpolating or mirroring a `TokenInfo` shows no token.
public struct TokenInfo: Sendable, Equatable {
    /// The access token, in memory that is wiped.
    public let accessSecret: Secret
    /// The refresh token; `nil` when none was issued. The session then ends with the access token.
    public let refreshSecret: Secret?
    /// The ID token of OpenID Connect; `nil` when none was issued.
    public let idSecret: Secret?
    /// The type of the access token, usually `Bearer` (RFC 6749 section 7.1).
    public var tokenType: String
    /// The granted scopes, separated by spaces; `nil` when the server did not say.
    public var scope: String?
    /// The expiry of the access token, by this machine's clock, in whole seconds; `nil` when the server did
    /// not say.
    public var accessTokenExpiry: Date? { didSet { accessTokenExpiry = accessTokenExpiry?.wholeSeconds } }
    /// The expiry of the refresh token, in whole seconds; `nil` when the server did not say.
    public var refreshTokenExpiry: Date? { didSet { refreshTokenExpiry = refreshTokenExpiry?.wholeSeconds } }
    /// Whether the access token's lifetime in the response is unusable, such as 0. ``accessTokenExpiry`` is then
    /// `nil`.
    public var hasUnusableLifetime = false
    /// The scopes that the client requests for its own tokens, without a user (RFC 6749 section 4.4); `nil` for
    /// tokens of a user. A renewal then requests new tokens with these scopes and without a refresh token.
    public var clientScopes: [String]?
    /// The private key that the tokens are bound to, in PEM (RFC 9449); `nil` for bearer tokens. A server accepts a
    /// bound token only with a proof of the key in each request.
    public var dpopKey: Secret?

    /// The type of a token that is bound to a key (RFC 9449 section 5).
    package static let dpopType = "DPoP"

    /// Creates the tokens of a session.
    public init(
        accessToken: String, refreshToken: String? = nil, idToken: String? = nil,
        tokenType: String = "Bearer",
        scope: String? = nil, accessTokenExpiry: Date? = nil, refreshTokenExpiry: Date? = nil
    ) {
        self.init(
            access: Secret(utf8: accessToken), refresh: refreshToken.map { Secret(utf8: $0) },
            id: idToken.map { Secret(utf8: $0) }, tokenType: tokenType, scope: scope,
            accessTokenExpiry: accessTokenExpiry, refreshTokenExpiry: refreshTokenExpiry)
    }

    init(
        access: Secret, refresh: Secret?, id: Secret?, tokenType: String, scope: String?,
        accessTokenExpiry: Date?, refreshTokenExpiry: Date?
    ) {
        accessSecret = access
        refreshSecret = refresh
        idSecret = id
        self.tokenType = tokenType
        self.scope = scope
        self.accessTokenExpiry = accessTokenExpiry?.wholeSeconds
        self.refreshTokenExpiry = refreshTokenExpiry?.wholeSeconds
    }

    /// Whether the tokens are the client's own, without a user: ``clientScopes`` is not `nil`.
    public var isOfClient: Bool { clientScopes != nil }
    /// The token that a refresh replaces: the refresh token, or without one the access token.
    var replacedSecret: Secret { refreshSecret ?? accessSecret }
    /// Whether the session can be renewed: with a refresh token, or by client credentials.
    package var isRenewable: Bool { refreshSecret != nil || isOfClient }
    /// The access token as text.
    public var accessToken: String { accessSecret.text }
    /// The refresh token as text.
    public var refreshToken: String? { refreshSecret?.text }
    /// The ID token as text.
    public var idToken: String? { idSecret?.text }
    /// The expiry of the ID token, unverified; `nil` without one, or when the token does not say.
    package var idTokenExpiry: Date? {
        idToken.flatMap { UnverifiedClaims($0) }?.expiry.map { Date(timeIntervalSince1970: $0) }
    }
}

extension TokenInfo: RedactedStringConvertible {
    /// The expiry, and whether there is a refresh token; nothing else.
    public var description: String {
        let refresh = refreshSecret == nil ? "none" : "<redacted>"
        let expiry = accessTokenExpiry.map { "\(Int64($0.timeIntervalSince1970))" } ?? "unknown"
        return "TokenInfo(access: <redacted>, refresh: \(refresh), expires: \(expiry))"
    }
}

/// Encoded as an object with the names of the properties; times are seconds since 1970. The buffers of the
/// encoder and the decoder are not wiped.
extension TokenInfo: Codable {
    private enum CodingKeys: String, CodingKey {
        case accessToken, refreshToken, idToken, tokenType, scope, accessTokenExpiry, refreshTokenExpiry,
            hasUnusableLifetime, clientScopes, dpopKey
    }

    /// Reads the tokens. Throws the errors of `decoder`.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            accessToken: try values.decode(String.self, forKey: .accessToken),
            refreshToken: try values.decodeIfPresent(String.self, forKey: .refreshToken),
            idToken: try values.decodeIfPresent(String.self, forKey: .idToken),
            tokenType: try values.decode(String.self, forKey: .tokenType),
            scope: try values.decodeIfPresent(String.self, forKey: .scope),
            accessTokenExpiry: try values.decodeIfPresent(Double.self, forKey: .accessTokenExpiry)
                .map(Date.init(timeIntervalSince1970:)),
            refreshTokenExpiry: try values.decodeIfPresent(Double.self, forKey: .refreshTokenExpiry)
                .map(Date.init(timeIntervalSince1970:)))
        hasUnusableLifetime = try values.decodeIfPresent(Bool.self, forKey: .hasUnusableLifetime) ?? false
        clientScopes = try values.decodeIfPresent([String].self, forKey: .clientScopes)
        dpopKey = try values.decodeIfPresent(String.self, forKey: .dpopKey).map { Secret(utf8: $0) }
    }

    /// Writes the tokens in plaintext. Throws the errors of `encoder`.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(accessToken, forKey: .accessToken)
        try values.encodeIfPresent(refreshToken, forKey: .refreshToken)
        try values.encodeIfPresent(idToken, forKey: .idToken)
        try values.encode(tokenType, forKey: .tokenType)
        try values.encodeIfPresent(scope, forKey: .scope)
        try values.encodeIfPresent(accessTokenExpiry?.timeIntervalSince1970, forKey: .accessTokenExpiry)
        try values.encodeIfPresent(refreshTokenExpiry?.timeIntervalSince1970, forKey: .refreshTokenExpiry)
        if hasUnusableLifetime { try values.encode(true, forKey: .hasUnusableLifetime) }
        try values.encodeIfPresent(clientScopes, forKey: .clientScopes)
        try values.encodeIfPresent(dpopKey?.text, forKey: .dpopKey)
    }
}

extension Secret {
    /// The bytes as text; they were created from text.
    var text: String { unprotectedText() ?? "" }

    /// Whether a token can be put into a header: one or more visible ASCII characters or spaces (RFC 6749
    /// appendix A.12).
    var isTokenText: Bool {
        unprotectedText().map { !$0.isEmpty && $0.utf8.allSatisfy { (0x20...0x7e).contains($0) } } ?? false
    }
}

extension Date {
    /// The date rounded down to whole seconds, so that every encoding keeps it, and limited to 1970 through
    /// 9999. `nil` for a value that is not a date.
    var wholeSeconds: Date? {
        let seconds = timeIntervalSince1970
        guard !seconds.isNaN else { return nil }
        return Date(timeIntervalSince1970: min(max(seconds, 0), 253_402_300_799).rounded(.down))
    }
}
