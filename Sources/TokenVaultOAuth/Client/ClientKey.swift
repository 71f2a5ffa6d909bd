#if OAuth
internal import JWTKit
public import TokenVault
public import TokenVaultAuth

/// A client's private key. The client signs assertions with it instead of sending a secret (RFC 7523 section
/// 2.2). Printing it shows no key.
public struct ClientKey: Sendable, Equatable {
    private let pem: Secret
    private let kind: Kind
    /// The name of the key at the provider (`kid`); `nil` when the provider needs none.
    public let identifier: String?

    /// Reads the first private key in PEM: PKCS #8, PKCS #1 or SEC 1. RSA keys of at least 2,048 bits sign with RS256. Keys on P-256,
    /// P-384 and P-521 sign with ES256, ES384 and ES512. Throws `invalidKey` for anything else.
    public init(pem: Secret, identifier: String? = nil) throws(OAuthError) {
        guard let kind = pem.unprotectedText().flatMap(Self.privateKey).flatMap(Kind.init) else {
            throw .invalidKey
        }
        self.kind = kind
        self.pem = pem
        self.identifier = identifier
    }

    /// Returns the block of a private key. Programs also write parameters or certificates into the same file.
    private static func privateKey(in text: String) -> String? {
        let lines = text.split(whereSeparator: \.isNewline)
        let isEdge = { (line: Substring, word: String) in
            let words = line.split(separator: " ")
            return words.first == "-----\(word)" && words.suffix(2) == ["PRIVATE", "KEY-----"]
        }
        guard let first = lines.firstIndex(where: { isEdge($0, "BEGIN") }),
            let last = lines[first...].firstIndex(where: { isEdge($0, "END") })
        else { return nil }
        return lines[first...last].joined(separator: "\n") + "\n"
    }

    /// Whether the key signs with ES256.
    var isP256: Bool {
        if case .es256 = kind { true } else { false }
    }

    /// Returns a signed token with `claims` (RFC 7515 section 3.1). Throws `invalidKey`.
    func sign(_ claims: AssertionClaims) async throws(OAuthError) -> String {
        let keys = JWTKeyCollection()
        do {
            switch kind {
            case .es256(let key): await keys.add(ecdsa: key)
            case .es384(let key): await keys.add(ecdsa: key)
            case .es512(let key): await keys.add(ecdsa: key)
            case .rsa(let key): await keys.add(rsa: key, digestAlgorithm: .sha256)
            }
            var header = JWTHeader()
            header.kid = identifier
            return try await keys.sign(claims, header: header)
        } catch {
            throw .invalidKey
        }
    }

    /// Whether both are the same key with the same identifier.
    public static func == (one: ClientKey, other: ClientKey) -> Bool {
        one.pem == other.pem && one.identifier == other.identifier
    }

    private enum Kind: Sendable {
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
#endif
