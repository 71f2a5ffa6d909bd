#if OAuth
import Crypto
import CryptoExtras
import Foundation
import TokenVaultCrypto
@testable import TokenVaultOAuth

/// A provider's key, and tokens signed with it by hand, so that they can be as wrong as a test wants.
struct SigningKey: Sendable {
    enum Kind: Sendable {
        case rsa(_RSA.Signing.PrivateKey, padding: @Sendable () -> _RSA.Signing.Padding)
        case p256(P256.Signing.PrivateKey)
        case p384(P384.Signing.PrivateKey)
        case ed25519(Curve25519.Signing.PrivateKey)
        case shared([UInt8])
        case none
    }

    let algorithm: String
    let kind: Kind
    var id: String? = "key-1"

    static let rsaKey = try? _RSA.Signing.PrivateKey(keySize: .bits2048)
    static let otherRSAKey = try? _RSA.Signing.PrivateKey(keySize: .bits2048)

    static func make(_ algorithm: String, id: String? = "key-1", other: Bool = false) -> SigningKey? {
        guard let rsa = other ? otherRSAKey : rsaKey else { return nil }
        switch algorithm {
        case "RS256": return SigningKey(algorithm: algorithm, kind: .rsa(rsa) { .insecurePKCS1v1_5 }, id: id)
        case "PS256": return SigningKey(algorithm: algorithm, kind: .rsa(rsa) { .PSS }, id: id)
        case "ES256": return SigningKey(algorithm: algorithm, kind: .p256(.init()), id: id)
        case "ES384": return SigningKey(algorithm: algorithm, kind: .p384(.init()), id: id)
        case "EdDSA": return SigningKey(algorithm: algorithm, kind: .ed25519(.init()), id: id)
        default: return nil
        }
    }

    /// The public half as a JSON Web Key.
    var jwk: String {
        var members: [(String, String)] = []
        func coordinates(_ raw: Data) {
            let half = raw.count / 2
            members += [
                ("x", Base64.urlText([UInt8](raw.prefix(half)))),
                ("y", Base64.urlText([UInt8](raw.suffix(half)))),
            ]
        }
        switch kind {
        case .rsa(let key, _):
            guard let numbers = try? key.publicKey.getKeyPrimitives() else { return "{}" }
            members = [
                ("kty", "RSA"), ("n", Base64.urlText([UInt8](numbers.modulus))),
                ("e", Base64.urlText([UInt8](numbers.publicExponent))),
            ]
        case .p256(let key):
            members = [("kty", "EC"), ("crv", "P-256")]
            coordinates(key.publicKey.rawRepresentation)
        case .p384(let key):
            members = [("kty", "EC"), ("crv", "P-384")]
            coordinates(key.publicKey.rawRepresentation)
        case .ed25519(let key):
            members = [
                ("kty", "OKP"), ("crv", "Ed25519"),
                ("x", Base64.urlText([UInt8](key.publicKey.rawRepresentation))),
            ]
        case .shared(let bytes): members = [("kty", "oct"), ("k", Base64.urlText(bytes))]
        case .none: break
        }
        if let id { members.append(("kid", id)) }
        return "{" + members.map { "\"\($0.0)\":\"\($0.1)\"" }.joined(separator: ",") + "}"
    }

    /// The text `payload`, signed.
    func sign(_ payload: String, header: String? = nil) throws -> String {
        let name = id.map { #","kid":"\#($0)""# } ?? ""
        let header = header ?? #"{"alg":"\#(algorithm)","typ":"JWT"\#(name)}"#
        let text = Base64.urlText(Array(header.utf8)) + "." + Base64.urlText(Array(payload.utf8))
        let bytes = Data(text.utf8)
        let signature: Data
        switch kind {
        case .rsa(let key, let padding):
            signature = try key.signature(for: SHA256.hash(data: bytes), padding: padding()).rawRepresentation
        case .p256(let key): signature = try key.signature(for: bytes).rawRepresentation
        case .p384(let key): signature = try key.signature(for: bytes).rawRepresentation
        case .ed25519(let key): signature = try key.signature(for: bytes)
        case .shared(let key):
            signature = Data(HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key)))
        case .none: signature = Data()
        }
        return text + "." + Base64.urlText([UInt8](signature))
    }
}
#endif
