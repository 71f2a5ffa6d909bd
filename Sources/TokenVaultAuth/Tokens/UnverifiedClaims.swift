#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The unverified claims of a JSON Web Token (RFC 7519 section 4.1). Used only to decide when to refresh it, and
/// whether two tokens belong to one session.
struct UnverifiedClaims: Decodable {
    private let exp: Double?
    private let sid: String?

    /// Reads the claims of `token`; returns `nil` when it is not a JSON Web Token.
    init?(_ token: String) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, token.utf8.count < 1 << 16, let payload = Self.decoded(parts[1]),
            let claims = try? JSONDecoder().decode(Self.self, from: payload)
        else { return nil }
        self = claims
    }

    /// Reads the claims. One of another type counts as absent.
    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        exp = try? values.decode(Double.self, forKey: .exp)
        sid = try? values.decode(String.self, forKey: .sid)
    }

    private enum CodingKeys: CodingKey { case exp, sid }

    /// The provider's name of the session; `nil` when the claim is missing or empty.
    var session: String? { sid.flatMap { $0.isEmpty ? nil : $0 } }

    /// The expiry of the token, in seconds since 1970; `nil` when the claim is missing or impossible.
    var expiry: Double? { exp.flatMap { $0.isFinite && $0 > 0 && $0 < 1e12 ? $0 : nil } }

    private static func decoded(_ part: Substring) -> Data? {
        var text = String(part).replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return Data(base64Encoded: text)
    }
}
