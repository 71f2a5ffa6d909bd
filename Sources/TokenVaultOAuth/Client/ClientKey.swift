#if OAuth
internal import JWTKit
public import TokenVault
public import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A client's private key. The client signs assertions with it instead of sending a secret (RFC 7523 section
/// 2.2). Printing it shows no key.
public struct ClientKey: Sendable, Equatable {
    private let pem: Secret
    /// The name of the key at the provider (`kid`); `nil` when the provider needs none.
    public let identifier: String?

    /// Reads a key in PEM: PKCS #8, or the older form of its kind. Accepts an RSA key of 2,048 bits or more, which
    /// signs with RS256, and a key on P-256, P-384 or P-521, which signs with ES256, ES384 or ES512. Throws
    /// `invalid` for anything else.
    public init(pem: Secret, identifier: String? = nil) throws(OAuthError) {
        guard pem.unprotectedText().flatMap(Kind.init) != nil else { throw .invalid("the client's key") }
        self.pem = pem
        self.identifier = identifier
    }

    /// Whether the key signs with ES256.
    var isOfP256: Bool {
        if case .es256 = pem.unprotectedText().flatMap(Kind.init) { true } else { false }
    }

    /// Returns a signed token with `claims` (RFC 7515 section 3.1). Throws `invalid`.
    func sign(_ claims: AssertionClaims) async throws(OAuthError) -> String {
        let keys = JWTKeyCollection()
        do {
            switch pem.unprotectedText().flatMap(Kind.init) {
            case .es256(let key): await keys.add(ecdsa: key)
            case .es384(let key): await keys.add(ecdsa: key)
            case .es512(let key): await keys.add(ecdsa: key)
            case .rsa(let key): await keys.add(rsa: key, digestAlgorithm: .sha256)
            case nil: throw OAuthError.invalid("the client's key")
            }
            var header = JWTHeader()
            header.kid = identifier
            return try await keys.sign(claims, header: header)
        } catch {
            throw .invalid("the client's key")
        }
    }

    private enum Kind {
        case es256(ES256PrivateKey)
        case es384(ES384PrivateKey)
        case es512(ES512PrivateKey)
        case rsa(Insecure.RSA.PrivateKey)

        init?(_ pem: String) {
            if let key = try? ES256PrivateKey(pem: pem) {
                self = .es256(key)
            } else if let key = try? ES384PrivateKey(pem: pem) {
                self = .es384(key)
            } else if let key = try? ES512PrivateKey(pem: pem) {
                self = .es512(key)
            } else if let key = try? Insecure.RSA.PrivateKey(pem: pem) {
                self = .rsa(key)
            } else {
                return nil
            }
        }
    }
}

extension ClientKey: RedactedStringConvertible {}

/// The claims of a client's assertion (RFC 7523 section 3).
struct AssertionClaims: JWTPayload {
    private let iss: String
    private let sub: String
    private let aud: String
    private let iat: Int
    private let exp: Int
    private let jti: String

    /// The lifetime of an assertion. It is used at once.
    private static let lifetime = 120

    init(of issuer: String, for subject: String, to audience: String, at time: Date) {
        iss = issuer
        sub = subject
        aud = audience
        iat = Int(time.timeIntervalSince1970)
        exp = iat + Self.lifetime
        jti = RandomText.make().unprotectedText() ?? ""
    }

    /// Nothing to check: a client only signs these claims.
    func verify(using algorithm: some JWTAlgorithm) {}
}
#endif
