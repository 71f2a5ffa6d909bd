#if OAuth
import AsyncHTTPClient
import Foundation
import TokenVault
import TokenVaultCrypto
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// A server whose every answer, of one of several kinds, has the secrets in it that it was sent and was told of.
struct EchoingServer {
    /// How many kinds of answers there are.
    static let replies = kinds("", "").count

    private let server: ScriptedServer
    private let search: SecretSearch
    private let secret: String
    private let given: String

    init(_ number: Int, _ search: SecretSearch) async throws {
        let (secret, given) = (search.make(), search.make())
        (self.search, self.secret, self.given) = (search, secret, given)
        server = try await ScriptedServer { asked in
            // The answers repeat the request as well.
            Self.kinds(given, "\(asked.body) \(asked.headers)".replacing("\"", with: "'"))[number]
        }
    }

    /// An answer of each kind, with the secret `given` and what was `asked`.
    private static func kinds(_ given: String, _ asked: String) -> [ScriptedServer.Reply] {
        let echo = "\(given) \(asked)"
        let error = #"{"error":"invalid_grant","error_description":"\#(echo)","error_uri":"\#(echo)"}"#
        let claims = Base64.urlText(Array(#"{"iss":"\#(given)","sub":"\#(given)","nonce":"\#(given)"}"#.utf8))
        let tokens = #""access_token":"\#(given)","refresh_token":"\#(given)""#
        let headers = ["Date", "Retry-After", "WWW-Authenticate", "Location", "Content-Type", "X-Echo"].map {
            ($0, echo)
        }
        return [
            .json(error, status: 400), .json(error, status: 401), .json(error, status: 403),
            .json(#"{"error":"\#(given)"}"#, status: 400), .json(#"{"error":{"\#(given)":1}}"#, status: 400),
            .json(error, status: 429), .json(error, status: 500), .json(error, status: 503),
            .init(status: 200, body: echo), .init(status: 400, body: "<html>\(echo)</html>"),
            .init(status: 302, headers: headers, body: echo),
            .init(status: 418, headers: headers, body: echo),
            .init(status: 503, headers: headers, body: echo), .init(status: 599, body: echo),
            .json("{\(tokens)}"), .json(#"{\#(tokens),"token_type":"\#(given)"}"#),
            .json(#"{\#(tokens),"token_type":{"\#(given)":["\#(given)"]}}"#),
            .json(#"{"access_token":["\#(given)"],"token_type":"Bearer"}"#),
            .json(#"{\#(tokens),"token_type":"Bearer","expires_in":1e999}"#),
            .json(#"{\#(tokens),"token_type":"Bearer","expires_in":99999999999999999999}"#),
            .json(#"{\#(tokens),"token_type":"Bearer","expires_in":"\#(given)"}"#),
            .json(#"{\#(tokens),"token_type":"Bearer","scope":"\#(given)\n"}"#),
            .json(#"{"access_token":"\#(given)\r\n","token_type":"Bearer"}"#),
            .json(#"{\#(tokens),"token_type":"Bearer","id_token":"\#(given)"}"#),
            .json(
                #"{\#(tokens),"token_type":"Bearer","id_token":"eyJhbGciOiJub25lIn0.\#(claims).\#(given)"}"#),
            .json(#"{\#(tokens),"token_type":"Bearer","id_token":"eyJhbGciOiJSUzI1NiJ9.\#(claims).AAAA"}"#),
            .json(#"{\#(tokens),"token_type":"Bearer","expires_in":60}"#),
            .json(#"{"issuer":"\#(given)","token_endpoint":"\#(given)","jwks_uri":"\#(given)"}"#),
            .json(#"{"keys":[{"kty":"RSA","kid":"\#(given)","n":"\#(given)","e":"\#(given)"}]}"#),
            .json(
                #"{"device_code":"\#(given)","user_code":"\#(given)","verification_uri":"https://a.example/","expires_in":60}"#
            ),
            .json(
                #"{"device_code":"\#(given)","user_code":"\#(given)","verification_uri":"\#(given)","expires_in":60}"#
            ),
            .json("{\(tokens),\(tokens)"), .dropped,
        ]
    }

    /// Asks for everything that a client asks a provider for, with each way to authenticate.
    func askEverything(_ listener: Listener) async {
        listener.hear(server.origin)
        let secret = Secret(utf8: secret)
        let ways = [ClientAuthentication.clientSecretPost(secret), .clientSecretBasic(secret)]
        for authentication in ways {
            guard let client = try? client(server, authentication: authentication) else { continue }
            listener.hear(client)
            await listener.attempt { try await client.clientCredentials() }
            await listener.attempt {
                try await client.signIn(with: try await client.authorizeDevice(scopes: []))
            }
            await listener.attempt { try await signIn(client) }
            await listener.attempt {
                try await client.refreshRequestProvider(
                    RefreshRequest(
                        account: "a", refreshToken: search.make(), scope: nil, idToken: search.make(),
                        isRetryOfUnknownOutcome: true))
            }
            await listener.attempt {
                try await client.revokeRequestProvider?(
                    TokenInfo(accessToken: search.make(), refreshToken: search.make()))
            }
            await listener.attempt {
                try await ProviderMetadata.discover(issuer: server.origin, transport: client.transport)
            }
            await listener.attempt {
                try await client.idTokenValidator.validate("eyJhbGciOiJSUzI1NiJ9.\(search.make()).AAAA")
            }
            await manage(client, listener)
        }
    }

    private func signIn(_ client: OAuthClient) async throws -> SignInResult {
        let request = try client.authorizationRequest(redirectURI: "https://a.example/", scopes: ["openid"])
        search.add(request.proofKey.verifier.unprotectedText())
        search.add(request.nonce?.unprotectedText())
        let state = request.state.unprotectedText() ?? ""
        search.add(state)
        return try await client.signIn(
            request, callback: "https://a.example/?code=\(FormEncoding.encode(search.make()))&state=\(state)")
    }

    /// A session whose refresh and whose requests this server answers.
    private func manage(_ client: OAuthClient, _ listener: Listener) async {
        var configuration = TokenManager.Configuration()
        configuration.attempts = 1
        let manager = client.tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a", configuration: configuration)
        await listener.attempt {
            try await manager.updateTokens(TokenInfo(accessToken: search.make(), refreshToken: search.make()))
        }
        let origin = RequestOrigin(scheme: "http", host: "127.0.0.1", port: server.port)
        let api = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [origin]), maximumRedirects: 1)
        // The server's own answer belongs to the caller, and may be printed. A thrown error is ours.
        do {
            _ = try await api.execute(HTTPClientRequest(url: "\(server.origin)/x"), timeout: .seconds(3_600))
        } catch { listener.hear(error) }
        await listener.attempt { try await manager.refreshTokens() }
        listener.hear(await manager.authState())
        await listener.attempt { try await manager.revokeTokens() }
        // The connections of these objects carried requests with tokens.
        for value in [manager, api, client.transport] as [Any] { listener.hear(value) }
    }
}
#endif
