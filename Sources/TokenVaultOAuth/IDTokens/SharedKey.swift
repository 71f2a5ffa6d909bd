#if OAuth
internal import JWTKit
internal import TokenVault

/// A client's secret as the key of ID tokens (OpenID Connect Core section 10.1).
struct SharedKey: Sendable {
    /// The only algorithm of such tokens that is accepted.
    static let algorithm = "HS256"
    /// The shortest secret, in bytes: as long as the digest (RFC 7518 section 3.2).
    private static let shortest = 32

    private let secret: Secret

    /// Creates the key; `nil` for a secret that is too short.
    init?(_ secret: Secret) {
        guard (secret.unprotectedText()?.utf8.count ?? 0) >= Self.shortest else { return nil }
        self.secret = secret
    }

    /// Whether the key has signed `token`.
    func verifies(_ token: SignedToken) async -> Bool {
        guard let text = secret.unprotectedText() else { return false }
        let keys = JWTKeyCollection()
        await keys.add(hmac: HMACKey(from: text), digestAlgorithm: .sha256)
        return (try? await keys.getKey().verify(token.signature, signs: token.signed)) ?? false
    }
}
#endif
