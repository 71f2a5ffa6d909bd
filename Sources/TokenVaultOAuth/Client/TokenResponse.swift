#if OAuth
internal import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A token endpoint's success (RFC 6749 section 5.1), looked at: it is a bearer token that a header can carry.
struct TokenResponse: Sendable {
    let accessToken: String
    let refreshToken: String?
    let idToken: String?
    let scope: String?
    /// In seconds.
    let expiresIn: Double?
    /// In seconds; an extension that several providers have.
    let refreshTokenExpiresIn: Double?
    var serverDate: Date?

    /// What is in `body`. Throws `malformedResponse`, `unsupported` for a token of another type.
    init(_ body: [UInt8], serverDate: Date?) throws(OAuthError) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let document = try? decoder.decode(Document.self, from: Data(body)) else {
            throw .malformedResponse("the document")
        }
        // RFC 6749 section 7.1: a token of a type that is not understood is not used.
        guard document.tokenType.lowercased() == "bearer" else { throw .unsupported("bearer tokens") }
        guard Self.isToken(document.accessToken) else { throw .malformedResponse("the access token") }
        // Some providers say "" for none.
        let refreshToken = document.refreshToken.flatMap { $0.isEmpty ? nil : $0 }
        guard refreshToken.map(Self.isToken) ?? true else { throw .malformedResponse("the refresh token") }
        guard document.idToken.map(Self.isToken) ?? true else { throw .malformedResponse("the ID token") }
        guard document.scope.map(Self.isScope) ?? true else { throw .malformedResponse("the scope") }
        accessToken = document.accessToken
        self.refreshToken = refreshToken
        idToken = document.idToken
        scope = document.scope
        expiresIn = document.expiresIn?.seconds
        refreshTokenExpiresIn = document.refreshTokenExpiresIn?.seconds ?? document.refreshExpiresIn?.seconds
        self.serverDate = serverDate
    }

    /// The tokens of a session that was asked for at `begun`, with `scopes`: those are granted when nothing else is said
    /// (RFC 6749 section 5.1).
    func tokens(begun: Date, scopes: [String]) -> TokenInfo {
        let scope = scope ?? (scopes.isEmpty ? nil : scopes.joined(separator: " "))
        return TokenInfo(
            accessToken: accessToken, refreshToken: refreshToken, idToken: idToken, scope: scope,
            accessTokenExpiry: expiresIn.map { begun.addingTimeInterval($0) },
            refreshTokenExpiry: refreshTokenExpiresIn.map { begun.addingTimeInterval($0) })
    }

    /// Visible ASCII (RFC 6749 appendix A.12), no space: a header's value ends there.
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    private static func isScope(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x20...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
    }

    private struct Document: Decodable {
        let accessToken: String
        let tokenType: String
        let refreshToken: String?
        let idToken: String?
        let scope: String?
        let expiresIn: Lifetime?
        let refreshTokenExpiresIn: Lifetime?
        let refreshExpiresIn: Lifetime?
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
            let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
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
