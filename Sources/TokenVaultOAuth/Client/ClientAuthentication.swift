#if OAuth
public import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The way a client authenticates at the token endpoint (RFC 6749 section 2.3). Printing it shows no secret.
public enum ClientAuthentication: Sendable, Equatable {
    /// Only the client's name: for programs on users' machines, which cannot keep a secret (RFC 8252 section
    /// 8.4).
    case none
    /// The client's secret in the header (`client_secret_basic`).
    case clientSecretBasic(Secret)
    /// The client's secret in the form (`client_secret_post`).
    case clientSecretPost(Secret)
    /// An assertion that the client's key signs (`private_key_jwt`, RFC 7523 section 2.2).
    case privateKeyJWT(ClientKey)
    /// A secret for Apple, which the key of a developer team signs. A new one is made for each request, so that
    /// none expires. The key has to be on P-256.
    case appleSecret(ClientKey, team: String)
}

extension ClientAuthentication {
    /// The name in a provider's metadata (RFC 7591 section 2).
    var method: String {
        switch self {
        case .none: "none"
        case .clientSecretBasic: "client_secret_basic"
        case .clientSecretPost, .appleSecret: "client_secret_post"
        case .privateKeyJWT: "private_key_jwt"
        }
    }

    /// Throws `invalid` for a secret that is no text, and for a key of another kind than Apple accepts.
    func check() throws(OAuthError) {
        switch self {
        case .none, .privateKeyJWT: break
        case .clientSecretBasic(let secret), .clientSecretPost(let secret):
            guard secret.unprotectedText() != nil else { throw .invalid("the client's secret") }
        case .appleSecret(let key, let team):
            guard key.isOfP256 else { throw .invalid("the client's key") }
            guard key.identifier != nil else { throw .invalid("the name of the client's key") }
            guard !team.isEmpty else { throw .invalid("the client's team") }
        }
    }
}

/// The parts of a request that authenticate its client.
struct ClientCredentials {
    /// The form fields.
    private(set) var fields: FormEncoding.Fields
    /// The `Authorization` header; `nil` for none.
    private(set) var header: String?

    /// Creates those of `client` for a request to `endpoint`. Throws `invalid`.
    init(_ client: OAuthClient, for endpoint: WebAddress) async throws(OAuthError) {
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
                of: name, for: name, to: Self.audience(client, endpoint), at: client.clock())
            fields += [
                ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                ("client_assertion", try await key.sign(claims)),
            ]
        case .appleSecret(let key, let team):
            let claims = AssertionClaims(
                of: team, for: name, to: client.provider.issuer, at: client.clock())
            fields.append(("client_secret", try await key.sign(claims)))
        }
    }

    /// Returns the audience of an assertion: the token endpoint, as OpenID Connect Core section 9 says. Another
    /// origin could use such an assertion at the token endpoint, so it gets one for itself.
    private static func audience(_ client: OAuthClient, _ endpoint: WebAddress) -> String {
        guard let tokens = WebAddress.secure(client.provider.tokenEndpoint), tokens.origin == endpoint.origin
        else { return endpoint.text }
        return client.provider.tokenEndpoint
    }
}

extension OAuthClient {
    /// Sends `form` with the client's authentication to `endpoint`.
    func post(
        _ form: FormEncoding.Fields, to endpoint: WebAddress
    ) async -> Result<OAuthTransport.Answer, RefreshFailure> {
        let credentials: ClientCredentials
        do throws(OAuthError) {
            credentials = try await ClientCredentials(self, for: endpoint)
        } catch {
            return .failure(RefreshFailure(.refused("cannot_ask")))
        }
        let names = credentials.fields.map(\.name)
        let form = form.filter { !names.contains($0.name) } + credentials.fields
        let outcome = await transport.post(form, to: endpoint, authorization: credentials.header)
        if case .success(let answer) = outcome { explain(answer, to: form) }
        return outcome
    }
}
#endif
