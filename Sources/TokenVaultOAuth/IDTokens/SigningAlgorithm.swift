#if OAuth
internal import Crypto

/// The accepted algorithms for signing an ID token: those with a public key. `none` and the algorithms with a
/// shared secret are left out, so that a public key cannot be used as a secret.
public enum SigningAlgorithm: String, Sendable, CaseIterable {
    /// RSA, PKCS #1 v1.5, SHA-256.
    case rs256 = "RS256"
    /// RSA, PKCS #1 v1.5, SHA-384.
    case rs384 = "RS384"
    /// RSA, PKCS #1 v1.5, SHA-512.
    case rs512 = "RS512"
    /// RSA, PSS, SHA-256.
    case ps256 = "PS256"
    /// RSA, PSS, SHA-384.
    case ps384 = "PS384"
    /// RSA, PSS, SHA-512.
    case ps512 = "PS512"
    /// ECDSA on P-256, SHA-256.
    case es256 = "ES256"
    /// ECDSA on P-384, SHA-384.
    case es384 = "ES384"
    /// ECDSA on P-521, SHA-512.
    case es512 = "ES512"
    /// Ed25519.
    case edDSA = "EdDSA"

    /// The type of the algorithm's keys (RFC 7518 section 6.1, RFC 8037 section 2).
    var keyType: String {
        switch self {
        case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: "RSA"
        case .es256, .es384, .es512: "EC"
        case .edDSA: "OKP"
        }
    }

    /// The curve of the algorithm's keys.
    var curve: String? {
        switch self {
        case .es256: "P-256"
        case .es384: "P-384"
        case .es512: "P-521"
        case .edDSA: "Ed25519"
        default: nil
        }
    }

    /// Returns the first half of the digest for this algorithm (OpenID Connect Core section 3.1.3.6). Returns
    /// `nil` for Ed25519, since providers use different digests with it.
    func halfDigest(of text: String) -> [UInt8]? {
        let bytes = Array(text.utf8)
        let digest: [UInt8]
        switch self {
        case .rs256, .ps256, .es256: digest = Array(SHA256.hash(data: bytes))
        case .rs384, .ps384, .es384: digest = Array(SHA384.hash(data: bytes))
        case .rs512, .ps512, .es512: digest = Array(SHA512.hash(data: bytes))
        case .edDSA: return nil
        }
        return Array(digest.prefix(digest.count / 2))
    }
}
#endif
