#if OAuth
internal import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A token endpoint's success (RFC 6749 section 5.1), looked at: it is a bearer token that a header can carry. What is
/// optional and cannot be used counts as not told: with a rotated refresh token beside it the answer is worth more than that.
struct TokenResponse: Sendable {
    let accessToken: String
    /// `nil` when the server did not say.
    let tokenType: String?
    let refreshToken: String?
    /// Not looked at but for its being there.
    let idToken: String?
    let scope: String?
    /// In seconds, more than none.
    let expiresIn: Double?
    /// In seconds, more than none; an extension that several providers have.
    let refreshTokenExpiresIn: Double?
    var serverDate: Date?

    /// What is in `body`, where a type of the token is needed unless `namesType` is false. Throws `malformedResponse`,
    /// `unsupported` for a token of another type.
    init(_ body: [UInt8], serverDate: Date?, namesType: Bool = true) throws(OAuthError) {
        guard let document = Document(body), let accessToken = document.accessToken,
            document.tokenType != nil || !namesType
        else { throw .malformedResponse("the document") }
        // RFC 6749 section 7.1: a token of a type that is not understood is not used.
        guard document.tokenType.map({ $0.lowercased() == "bearer" }) ?? true else {
            throw .unsupported("bearer tokens")
        }
        guard Self.isToken(accessToken) else { throw .malformedResponse("the access token") }
        guard !document.hasOddRefreshToken, document.refreshToken.map(Self.isToken) ?? true else {
            throw .malformedResponse("the refresh token")
        }
        self.accessToken = accessToken
        tokenType = document.tokenType.map { _ in "Bearer" }
        refreshToken = document.refreshToken
        idToken = document.idToken
        scope = document.scope.flatMap { Self.isScope($0) ? $0 : nil }
        expiresIn = document.expiresIn
        refreshTokenExpiresIn = document.refreshTokenExpiresIn ?? document.refreshExpiresIn
        self.serverDate = serverDate
    }

    /// The tokens of a session that was asked for at `begun`, with `scopes`: those are granted when nothing else is said
    /// (RFC 6749 section 5.1).
    func tokens(begun: Date, scopes: [String]) -> TokenInfo {
        let scope = scope ?? (scopes.isEmpty ? nil : scopes.joined(separator: " "))
        return TokenInfo(
            accessToken: accessToken, refreshToken: refreshToken,
            idToken: idToken.flatMap { Self.isToken($0) ? $0 : nil }, scope: scope,
            accessTokenExpiry: expiresIn.map { begun.addingTimeInterval($0) },
            refreshTokenExpiry: refreshTokenExpiresIn.map { begun.addingTimeInterval($0) })
    }

    /// The tokens in the body of a success that is none, with what a revocation calls them, the refresh token first; and whether
    /// these are all that were given, as far as can be read.
    static func leftovers(in body: [UInt8]) -> (tokens: [(token: String, hint: String)], areAll: Bool) {
        guard let document = Document(body) else { return ([], false) }
        let given = [(document.refreshToken, "refresh_token"), (document.accessToken, "access_token")]
        let tokens = given.compactMap { token, hint in token.flatMap { isToken($0) ? ($0, hint) : nil } }
        let areAll =
            document.accessToken != nil && !document.hasOddRefreshToken
            && tokens.count == given.count { $0.0 != nil }
        return (tokens, areAll)
    }

    /// Visible ASCII (RFC 6749 appendix A.12), no space: a header's value ends there. No longer than what can be kept.
    private static func isToken(_ text: String) -> Bool {
        (1...TokenRefreshResponse.longestToken).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    private static func isScope(_ text: String) -> Bool {
        text.utf8.count <= 16 << 10
            && text.utf8.allSatisfy { (0x20...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
    }

    /// What the object has of it, member by member: one of another kind spoils no other.
    private struct Document: Decodable {
        let accessToken: String?
        let tokenType: String?
        let refreshToken: String?
        /// Whether there is a refresh token that is no text: which one is good now is not known then.
        let hasOddRefreshToken: Bool
        let idToken: String?
        let scope: String?
        let expiresIn: Double?
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
            // Some providers say "" for none.
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
            // Twitch gives a list.
            scope =
                text(.scope)
                ?? (try? values.decode([String].self, forKey: .scope))?.joined(separator: " ")
            expiresIn = lifetime(.expiresIn)
            refreshTokenExpiresIn = lifetime(.refreshTokenExpiresIn)
            refreshExpiresIn = lifetime(.refreshExpiresIn)
        }
    }
}

/// Seconds, as a number or as the digits of one; never less than none, nor more than a hundred years.
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
