#if OAuth
internal import JWTKit
internal import Synchronization
public import TokenVault
public import TokenVaultAuth
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A private key on P-256 that the tokens of a session are bound to (RFC 9449). A server accepts a bound token only with
/// a proof that the key signed for the same request. Printing a `DPoPKey` shows no key.
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

    /// Creates the key from PEM text, such as ``pem`` or `TokenInfo.dpopKey`. Throws `invalid` unless the text is a
    /// private key on P-256.
    public init(pem: Secret) throws(OAuthError) {
        guard let key = pem.unprotectedText().flatMap({ try? ES256PrivateKey(pem: $0) }) else {
            throw .invalid("the session's key")
        }
        self.pem = Secret(utf8: key.pemRepresentation)
        self.key = key
    }

    /// Returns the key in `pem`; `nil` without one. Throws `invalid`.
    static func key(in pem: Secret?) throws(OAuthError) -> DPoPKey? {
        guard let pem else { return nil }
        return try DPoPKey(pem: pem)
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
    /// `url` is the address of the request; the proof omits its query and fragment. `accessToken` is the token of an API
    /// request. `nonce` is the last `DPoP-Nonce` of the server. Throws `invalid` for an address or a key that cannot be
    /// used.
    public func proof(
        method: String, url: String, accessToken: Secret? = nil, nonce: String? = nil, at time: Date = Date()
    ) async throws(OAuthError) -> String {
        let address = String(decoding: url.utf8.prefix { $0 != 0x3f && $0 != 0x23 }, as: UTF8.self)
        guard let origin = RequestOrigin(address: address) else {
            throw .invalid("the address of the request")
        }
        let path = address.utf8.dropFirst(origin.scheme.utf8.count + 3).drop { $0 != 0x2f }
        let claims = DPoPClaims(
            jti: RandomText.make().unprotectedText() ?? "", htm: method,
            htu: origin.text + (path.isEmpty ? "/" : String(Substring(path))),
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

    /// Whether both keys have the same thumbprint.
    public static func == (one: DPoPKey, other: DPoPKey) -> Bool { one.thumbprint == other.thumbprint }
}

extension DPoPKey: RedactedStringConvertible {}

/// The claims of a proof (RFC 9449 section 4.2).
private struct DPoPClaims: SignedClaims {
    let jti: String
    let htm: String
    let htu: String
    let iat: Int
    let ath: String?
    let nonce: String?
}

/// The latest nonce of each server, for the next proof (RFC 9449 sections 8 and 9).
final class DPoPNonces: Sendable {
    private let inside = Mutex<[RequestOrigin: String]>([:])

    /// The largest number of servers whose nonces are kept. Beyond it, all nonces are dropped.
    private static let most = 100

    func value(_ origin: RequestOrigin) -> String? { inside.withLock { $0[origin] } }

    /// Stores the nonce of a response from `origin`, unless the nonce is invalid. Returns whether a nonce was stored that
    /// differs from `sent`.
    @discardableResult
    func note(_ nonce: String?, of origin: RequestOrigin, after sent: String? = nil) -> Bool {
        guard let nonce, ProofTarget.isNonce(nonce) else { return false }
        inside.withLock { nonces in
            if nonces.count >= Self.most, nonces[origin] == nil { nonces = [:] }
            nonces[origin] = nonce
        }
        return nonce != sent
    }
}
#endif
