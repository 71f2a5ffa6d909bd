#if OAuth
internal import JWTKit
internal import Synchronization
internal import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The parts of a request that authenticate its client.
struct RequestAuthentication {
    /// The form fields.
    private(set) var fields: FormEncoding.Fields
    /// The `Authorization` header; `nil` for none.
    private(set) var header: String?
    /// The `DPoP` header; `nil` for none.
    private(set) var proof: String?

    /// The headers, with their names.
    var headers: [(name: String, value: String)] {
        [("Authorization", header), ("DPoP", proof)].compactMap { name, value in value.map { (name, $0) } }
    }

    /// Creates the authentication of `client`. An assertion is for `audience`. With `key`, also signs a proof for
    /// `endpoint` with `nonce`. Throws `invalidKey` for the client's key, and `invalid` for `key`.
    init(
        _ client: OAuthClient, audience: String, at endpoint: WebAddress, _ key: DPoPKey?, nonce: String?
    ) async throws(OAuthError) {
        proof = try await key?.proof(
            method: "POST", url: endpoint.text, nonce: nonce, at: client.clock())
        let name = client.clientID
        fields = [("client_id", name)]
        switch client.authentication {
        case .none: break
        case .clientSecretBasic(let secret):
            fields = []
            // Name and secret are encoded before they are joined (RFC 6749 section 2.3.1), so that a colon in the
            // name does not separate them.
            let pair =
                "\(FormEncoding.encode(name)):\(FormEncoding.encode(secret.unprotectedText() ?? ""))"
            header = "Basic \(Data(pair.utf8).base64EncodedString())"
        case .clientSecretPost(let secret):
            fields.append(("client_secret", secret.unprotectedText() ?? ""))
        case .privateKeyJWT(let key):
            let claims = AssertionClaims(
                of: name, for: name, to: audience, at: client.clock())
            fields += [
                ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                ("client_assertion", try await key.sign(claims)),
            ]
        case .appleSecret(let key, let teamID):
            let claims = AssertionClaims(
                of: teamID, for: name, to: client.provider.issuer, at: client.clock())
            fields.append(("client_secret", try await key.sign(claims)))
        }
    }

    /// Returns the audiences of an assertion for `endpoint`, in the order of the attempts. Providers disagree: some
    /// accept only the endpoint that is called, others only the token endpoint (OpenID Connect Core section 9) or the
    /// issuer.
    ///
    /// An endpoint at another origin gets its own address alone. It could otherwise replay the assertion.
    static func audiences(_ client: OAuthClient, _ endpoint: WebAddress) -> [String] {
        guard case .privateKeyJWT = client.authentication else { return [endpoint.text] }
        let others = [client.provider.tokenEndpoint, client.provider.issuer].filter {
            $0 != endpoint.text && WebAddress($0)?.origin == endpoint.origin
        }
        return [endpoint.text] + others
    }
}

/// The audiences that endpoints accepted, so that no later request tries another one first.
final class AcceptedAudiences: Sendable {
    private let inside = Mutex<[String: String]>([:])

    func value(_ endpoint: String) -> String? { inside.withLock { $0[endpoint] } }

    func note(_ audience: String, at endpoint: String) { inside.withLock { $0[endpoint] = audience } }
}

/// The claims of a client's assertion (RFC 7523 section 3).
struct AssertionClaims: SignedClaims {
    private let iss: String
    private let sub: String
    private let aud: String
    private let iat: Int
    private let exp: Int
    private let jti: String

    /// The lifetime of an assertion, in seconds. The client sends each assertion immediately.
    private static let lifetime = 120

    init(of issuer: String, for subject: String, to audience: String, at time: Date) {
        iss = issuer
        sub = subject
        aud = audience
        iat = Int(time.timeIntervalSince1970)
        exp = iat + Self.lifetime
        jti = RandomText.make().unprotectedText() ?? ""
    }
}

/// Claims that this client signs, and never reads.
protocol SignedClaims: JWTPayload {}

extension SignedClaims {
    /// Checks nothing.
    func verify(using algorithm: some JWTAlgorithm) {}
}
#endif
