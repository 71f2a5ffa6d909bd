#if OAuth
internal import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A checked success of a token endpoint (RFC 6749 section 5.1). The access token is a bearer token that a header can
/// carry, or is bound to a key (RFC 9449 section 5).
/// Unusable optional parts are dropped, since the response may have a rotated refresh token.
struct TokenResponse: Sendable {
    let accessToken: String
    /// `Bearer` or `DPoP`; `nil` when the server did not say. Bearer is then assumed: the document has to name the type (RFC 6749
    /// section 5.1), but some providers leave it out.
    let tokenType: String?
    private(set) var refreshToken: String?
    /// The ID token, not checked here.
    private(set) var idToken: String?
    let scope: String?
    /// In seconds, above zero.
    let expiresIn: Double?
    /// Whether the server gave a lifetime that cannot be used.
    let hasUnusableLifetime: Bool
    /// In seconds, above zero; an extension that several providers have.
    private(set) var refreshTokenExpiresIn: Double?
    var serverDate: Date?
    /// The key that the tokens are bound to, in PEM; `nil` for bearer tokens.
    let dpopKey: Secret?

    /// Reads `body`, the response to a request with a proof of `dpopKey`. Throws `malformedResponse`, and `unsupported`
    /// for another token type.
    init(_ body: [UInt8], serverDate: Date?, dpopKey: Secret? = nil) throws(OAuthError) {
        guard let document = Document(body), let accessToken = document.accessToken else {
            throw .malformedResponse("the document")
        }
        // RFC 6749 section 7.1: a token of an unknown type is not used.
        let type = document.tokenType?.lowercased()
        if dpopKey == nil {
            guard type == nil || type == "bearer" else { throw .unsupported("bearer tokens") }
        } else {
            // The client requested bound tokens. A thief could use a bearer token.
            guard type == "dpop" else { throw .unsupported("DPoP") }
        }
        guard Self.isToken(accessToken) else { throw .malformedResponse("the access token") }
        guard !document.hasOddRefreshToken, document.refreshToken.map(Self.isToken) ?? true else {
            throw .malformedResponse("the refresh token")
        }
        self.accessToken = accessToken
        tokenType = type.map { $0 == "dpop" ? TokenInfo.dpopType : "Bearer" }
        self.dpopKey = dpopKey
        refreshToken = document.refreshToken
        idToken = document.idToken
        scope = document.scope.flatMap { Self.isScope($0) ? $0 : nil }
        expiresIn = document.expiresIn
        hasUnusableLifetime = document.hasUnusableLifetime
        refreshTokenExpiresIn = document.refreshTokenExpiresIn ?? document.refreshExpiresIn
        self.serverDate = serverDate
    }

    /// Returns the tokens of a session that was requested at `begun` with `scopes`. The requested scopes
    /// count as granted if the response names none (RFC 6749 section 5.1).
    func tokens(begun: Date, scopes: [String]) -> TokenInfo {
        let scope = scope ?? (scopes.isEmpty ? nil : scopes.joined(separator: " "))
        var tokens = TokenInfo(
            accessToken: accessToken, refreshToken: refreshToken,
            idToken: idToken.flatMap { Self.isToken($0) ? $0 : nil }, tokenType: tokenType ?? "Bearer",
            scope: scope,
            accessTokenExpiry: expiresIn.map { begun.addingTimeInterval($0) },
            refreshTokenExpiry: refreshTokenExpiresIn.map { begun.addingTimeInterval($0) })
        tokens.hasUnusableLifetime = hasUnusableLifetime
        tokens.dpopKey = dpopKey
        return tokens
    }

    /// The response to a request of the client for itself. It has no refresh token (RFC 6749 section 4.4.3), which
    /// could end although the client's own credentials are good. No user signed in, so it has no ID token.
    var ofClient: TokenResponse {
        var response = self
        response.refreshToken = nil
        response.refreshTokenExpiresIn = nil
        response.idToken = nil
        return response
    }

    /// Returns the result of a sign-in that brought `tokens`, with the claims of the ID token.
    func result(_ tokens: TokenInfo, _ claims: IDTokenClaims? = nil) -> SignInResult {
        SignInResult(
            tokens: tokens, claims: claims, serverDate: serverDate, isTokenTypeAssumed: tokenType == nil)
    }

    /// Returns the tokens in an unusable success with their type hints, the refresh token first. Also returns
    /// whether these are all the tokens that were issued, as far as the body can be read.
    static func leftovers(in body: [UInt8]) -> (tokens: [(token: String, hint: String)], areAll: Bool) {
        guard let document = Document(body) else { return ([], false) }
        let given = [(document.refreshToken, "refresh_token"), (document.accessToken, "access_token")]
        let tokens = given.compactMap { token, hint in token.flatMap { isToken($0) ? ($0, hint) : nil } }
        let areAll =
            document.accessToken != nil && !document.hasOddRefreshToken
            && tokens.count == given.count { $0.0 != nil }
        return (tokens, areAll)
    }

    /// Whether `text` is visible ASCII (RFC 6749 appendix A.12) without spaces, which would end a header's
    /// value. It may be no longer than a stored token.
    private static func isToken(_ text: String) -> Bool {
        (1...TokenRefreshResponse.longestToken).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    private static func isScope(_ text: String) -> Bool {
        text.utf8.count <= 16 << 10
            && text.utf8.allSatisfy { (0x20...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
    }

    /// The members of the response, read one by one: an unexpected type in one affects no other.
    private struct Document: Decodable {
        let accessToken: String?
        let tokenType: String?
        let refreshToken: String?
        /// Whether the refresh token is not text: it is then unknown which refresh token is valid.
        let hasOddRefreshToken: Bool
        let idToken: String?
        let scope: String?
        let expiresIn: Double?
        let hasUnusableLifetime: Bool
        let refreshTokenExpiresIn: Double?
        let refreshExpiresIn: Double?

        private enum CodingKeys: String, CodingKey {
            case accessToken, tokenType, refreshToken, idToken, scope, expiresIn, refreshTokenExpiresIn,
                refreshExpiresIn
        }

        init?(_ body: [UInt8]) {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            guard let document = try? decoder.decode(Document.self, from: Data(body)) else { return nil }
            self = document
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            // Some providers send "" for a missing value.
            func text(_ key: CodingKeys) -> String? {
                (try? values.decode(String.self, forKey: key)).flatMap { $0.isEmpty ? nil : $0 }
            }
            func lifetime(_ key: CodingKeys) -> Double? {
                (try? values.decode(Lifetime.self, forKey: key)).flatMap { $0.seconds > 0 ? $0.seconds : nil }
            }
            accessToken = try? values.decode(String.self, forKey: .accessToken)
            tokenType = text(.tokenType)
            refreshToken = text(.refreshToken)
            let isAbsent = (try? values.decodeNil(forKey: .refreshToken)) ?? true
            hasOddRefreshToken =
                !isAbsent && (try? values.decode(String.self, forKey: .refreshToken)) == nil
            idToken = text(.idToken)
            // Twitch sends a list.
            scope =
                text(.scope)
                ?? (try? values.decode([String].self, forKey: .scope))?.joined(separator: " ")
            expiresIn = lifetime(.expiresIn)
            let isGiven = (try? values.decodeNil(forKey: .expiresIn)) == false
            let isEmpty = (try? values.decode(String.self, forKey: .expiresIn)) == ""
            hasUnusableLifetime = isGiven && !isEmpty && expiresIn == nil
            refreshTokenExpiresIn = lifetime(.refreshTokenExpiresIn)
            refreshExpiresIn = lifetime(.refreshExpiresIn)
        }
    }
}

/// Seconds, as a number or as digits in text, from zero to a hundred years.
struct Lifetime: Decodable {
    static let longest = 3_155_760_000.0
    let seconds: Double

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        let written: Double?
        if let text = try? value.decode(String.self) {
            let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2e }
            written = isNumber ? Double(text) : nil
        } else {
            written = try value.decode(Double.self)
        }
        guard let written, written >= 0 else {
            throw DecodingError.dataCorruptedError(in: value, debugDescription: "no lifetime")
        }
        seconds = min(written, Self.longest)
    }
}
#endif
