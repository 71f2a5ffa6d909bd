#if OAuth
internal import JWTKit
internal import Synchronization
public import TokenVault
public import TokenVaultAuth
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A private key on P-256 that the tokens of a session are bound to (RFC 9449). A server accepts such a token only
/// with a proof that the key signed for this request. Printing it shows no key.
public struct DPoPKey: Sendable, Equatable {
    /// The private key in PEM (PKCS #8), in memory that is wiped.
    public let pem: Secret
    private let key: ES256PrivateKey

    /// The algorithm of the proofs.
    static let algorithm = "ES256"

    /// Creates a random key.
    public init() {
        key = ES256PrivateKey()
        pem = Secret(utf8: key.pemRepresentation)
    }

    /// Reads the key of ``pem``, or of `TokenInfo.dpopKey`. Throws `invalid` for anything but a private key on P-256.
    public init(pem: Secret) throws(OAuthError) {
        guard let key = pem.unprotectedText().flatMap({ try? ES256PrivateKey(pem: $0) }) else {
            throw .invalid("the session's key")
        }
        self.pem = pem
        self.key = key
    }

    /// The coordinates of the public key, in the URL-safe alphabet (RFC 7518 section 6.2.1).
    private var point: (x: String, y: String) {
        let parameters = key.publicKey.parameters
        let urlSafe = { (text: String?) in
            (text ?? "").replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        return (urlSafe(parameters?.x), urlSafe(parameters?.y))
    }

    /// The thumbprint of the public key (RFC 7638), which an authorization request can name (`dpop_jkt`, RFC 9449
    /// section 10).
    public var thumbprint: String { Self.thumbprint(x: point.x, y: point.y) }

    static func thumbprint(x: String, y: String) -> String {
        Base64.urlText(Hash.sha256(Array(#"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#.utf8)))
    }

    /// Returns a proof for one request, the value of its `DPoP` header (RFC 9449 section 4.2).
    ///
    /// `url` is the address of the request; its query and fragment are left out. A request to an API also names its
    /// `accessToken`. `nonce` is the last `DPoP-Nonce` of that server. `time` is the time of the request. Throws `invalid`
    /// for an address that cannot be used.
    public func proof(
        method: String, url: String, accessToken: Secret? = nil, nonce: String? = nil, at time: Date = Date()
    ) async throws(OAuthError) -> String {
        guard let address = WebAddress(String(url.prefix { $0 != "#" })) else {
            throw .invalid("the address of the request")
        }
        let claims = DPoPClaims(
            jti: RandomText.make().unprotectedText() ?? "", htm: method, htu: address.withoutQuery,
            iat: Int(time.timeIntervalSince1970),
            ath: accessToken.map { Base64.urlText(Hash.sha256($0.unprotectedBytes())) }, nonce: nonce)
        let (x, y) = point
        var header = JWTHeader()
        header.typ = "dpop+jwt"
        header.jwk = ["kty": .string("EC"), "crv": .string("P-256"), "x": .string(x), "y": .string(y)]
        let keys = JWTKeyCollection()
        await keys.add(ecdsa: key)
        do { return try await keys.sign(claims, header: header) } catch {
            throw .invalid("the session's key")
        }
    }

    /// Whether both are the same key.
    public static func == (one: DPoPKey, other: DPoPKey) -> Bool { one.pem == other.pem }
}

extension DPoPKey: RedactedStringConvertible {}

/// The claims of a proof (RFC 9449 section 4.2).
private struct DPoPClaims: JWTPayload {
    let jti: String
    let htm: String
    let htu: String
    let iat: Int
    let ath: String?
    let nonce: String?

    /// Checks nothing: a client only signs these claims.
    func verify(using algorithm: some JWTAlgorithm) {}
}

/// The last nonces of servers for proofs (RFC 9449 sections 8 and 9).
final class DPoPNonces: Sendable {
    private let inside = Mutex<[RequestOrigin: String]>([:])

    /// The largest number of servers whose nonces are kept.
    private static let most = 100
    /// The longest kept nonce, in bytes.
    private static let longest = 2_048

    func value(_ origin: RequestOrigin) -> String? { inside.withLock { $0[origin] } }

    /// Keeps the nonce of a response of `origin`, if it is one. Returns whether it is another one than `sent`.
    @discardableResult
    func note(_ nonce: String?, of origin: RequestOrigin, after sent: String? = nil) -> Bool {
        guard let nonce, (1...Self.longest).contains(nonce.utf8.count),
            nonce.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c })
        else { return false }
        inside.withLock { nonces in
            if nonces.count >= Self.most, nonces[origin] == nil { nonces = [:] }
            nonces[origin] = nonce
        }
        return nonce != sent
    }
}
#endif
