#if OAuth
internal import JWTKit
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A provider's public key (RFC 7517 section 4).
struct ProviderKey: Sendable, Decodable {
    private let kty: String
    private let use: String?
    private let alg: String?
    private let keyOps: [String]?
    private let crv: String?
    private let n: String?
    private let e: String?
    private let x: String?
    private let y: String?
    /// The name of the key.
    let kid: String?

    private enum CodingKeys: String, CodingKey {
        case kty, use, alg, crv, n, e, x, y, kid
        case keyOps = "key_ops"
    }

    /// Returns the readable keys of a key set. A key of an unknown kind does not affect the others.
    static func keys(in body: [UInt8]) -> [ProviderKey]? {
        struct Entry: Decodable {
            let key: ProviderKey?
            init(from decoder: any Decoder) throws { key = try? ProviderKey(from: decoder) }
        }
        struct Document: Decodable { let keys: [Entry] }
        return (try? JSONDecoder().decode(Document.self, from: Data(body)))?.keys.compactMap(\.key)
    }

    /// Whether the key is for `algorithm`: of the right type and curve, and not reserved for another
    /// algorithm or another use (`use`, `key_ops`).
    func fits(_ algorithm: SigningAlgorithm) -> Bool {
        kty == algorithm.keyType && (alg == nil || alg == algorithm.rawValue) && (use == nil || use == "sig")
            && (keyOps?.contains("verify") ?? true) && (algorithm.curve == nil || crv == algorithm.curve)
    }

    /// Whether this key has signed `token` with `algorithm`, which it fits. Only this algorithm is used; the
    /// token's header is ignored.
    func verifies(_ token: SignedToken, with algorithm: SigningAlgorithm) async -> Bool {
        guard let jwk = jwk(for: algorithm) else { return false }
        do {
            let keys = JWTKeyCollection()
            try await keys.add(jwk: jwk)
            return try await keys.getKey(for: Self.name).verify(token.signature, signs: token.signed)
        } catch {
            return false
        }
    }

    private static let name: JWKIdentifier = "key"

    private func jwk(for algorithm: SigningAlgorithm) -> JWK? {
        guard let wanted = JWK.Algorithm(rawValue: algorithm.rawValue) else { return nil }
        switch algorithm.keyType {
        case "RSA": return .rsa(wanted, identifier: Self.name, modulus: n, exponent: e)
        case "EC":
            return .ecdsa(
                wanted, identifier: Self.name, x: x, y: y, curve: crv.flatMap(ECDSACurve.init(rawValue:)))
        default:
            // The libraries for verification accept every point.
            if crv == "Ed25519" {
                guard let x, let point = Base64.urlDecode(x), SignaturePoint.isValid(point) else {
                    return nil
                }
            }
            return .octetKeyPair(
                wanted, identifier: Self.name, x: x, y: nil, curve: crv.flatMap(EdDSACurve.init(rawValue:)))
        }
    }
}
#endif
