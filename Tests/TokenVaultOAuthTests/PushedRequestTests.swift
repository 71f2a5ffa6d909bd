#if OAuth
import NIOHTTP1
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

@testable import TokenVaultOAuth

/// Requests that are pushed ahead of the browser (RFC 9126).
@Suite(.tags(.provider), .from(.all)) struct PushedRequestTests {
    private func client(
        _ server: ScriptedServer, required: Bool = false, endpoint: String? = "/par",
        authentication: ClientAuthentication = .none
    ) throws -> OAuthClient {
        try OAuthClient(
            provider: try ProviderMetadata(
                issuer: server.origin, authorizationEndpoint: "\(server.origin)/authorize?tenant=a",
                tokenEndpoint: "\(server.origin)/token",
                pushedAuthorizationRequestEndpoint: endpoint.map { server.origin + $0 },
                requiresPushedAuthorizationRequests: required),
            clientID: "fake", authentication: authentication, transport: OAuthTransport())
    }

    private func request(_ client: OAuthClient) throws(OAuthError) -> AuthorizationRequest {
        try client.authorizationRequest(
            redirectURI: "http://127.0.0.1:1/cb", scopes: ["openid"], parameters: ["prompt": "login"])
    }

    @Test(arguments: [
        ClientAuthentication.none, .clientSecretBasic(Secret(utf8: "fake-secret")),
        .clientSecretPost(Secret(utf8: "fake-secret")),
    ])
    func theBrowserTakesAReference(_ authentication: ClientAuthentication) async throws {
        let server = try await ScriptedServer(
            always: .json(#"{"request_uri":"urn:example:a+b","expires_in":60}"#, status: 201))
        let client = try client(server, authentication: authentication)
        let request = try request(client)
        let pushed = try await client.pushed(request)
        #expect(
            pushed.url
                == "\(server.origin)/authorize?tenant=a&client_id=fake&request_uri=urn%3Aexample%3Aa%2Bb")
        #expect(pushed.redirectURI == request.redirectURI && pushed.state == request.state)
        let asked = try #require(server.asked.first)
        #expect(asked.path == "/par" && asked.method == "POST")
        for (name, value) in [
            ("client_id", "fake"), ("response_type", "code"), ("prompt", "login"), ("scope", "openid"),
            ("redirect_uri", "http://127.0.0.1:1/cb"), ("code_challenge_method", "S256"),
        ] {
            #expect(asked.form[name] == value)
        }
        #expect(asked.form["state"] == request.state.unprotectedText() && asked.form["nonce"] != nil)
        #expect(asked.headers["Authorization"].isEmpty == (authentication.method != "client_secret_basic"))
        #expect(
            asked.form["client_secret"]
                == (authentication.method == "client_secret_post" ? "fake-secret" : nil))
    }

    /// A rejected push falls back, unless the metadata requires pushed requests.
    @Test(arguments: [
        (
            ScriptedServer.Reply.json(#"{"error":"invalid_request"}"#, status: 400),
            OAuthError.requestFailed(RefreshFailure(.refused("invalid_request")))
        ),
        (.init(status: 404), .requestFailed(RefreshFailure(.unusable(404)))),
        (.dropped, .requestFailed(RefreshFailure(.interrupted))),
        (.json("{}", status: 201), .malformedResponse("the request_uri")),
        (.json(#"{"request_uri":"a b"}"#, status: 201), .malformedResponse("the request_uri")),
        (.json(#"{"request_uri":7}"#), .malformedResponse("the request_uri")),
        (
            .json(#"{"request_uri":"\#(String(repeating: "a", count: 513))"}"#),
            .malformedResponse("the request_uri")
        ),
    ])
    func aRefusalCountsWhereItIsRequired(
        _ reply: ScriptedServer.Reply, _ error: OAuthError
    ) async throws {
        let server = try await ScriptedServer(always: reply)
        let client = try client(server)
        let request = try request(client)
        #expect(try await client.pushed(request).url == request.url)
        let strict = try self.client(server, required: true)
        #expect(await failure { () async throws(OAuthError) in try await strict.pushed(request) } == error)
        #expect(server.asked.count == 2)
    }

    @Test func withoutAnEndpointNothingIsPushed() async throws {
        let server = try await ScriptedServer(always: .dropped)
        let client = try client(server, endpoint: nil)
        let request = try request(client)
        #expect(try await client.pushed(request).url == request.url)
        let strict = try self.client(server, required: true, endpoint: nil)
        #expect(
            await failure { () async throws(OAuthError) in try await strict.pushed(request) }
                == .invalidMetadata("the pushed authorization request endpoint"))
        #expect(server.asked.isEmpty)
    }

    @Test func theMetadataIsReadAndKept() throws {
        let text =
            #"{"issuer":"https://a.example","token_endpoint":"https://a.example/t","#
            + #""pushed_authorization_request_endpoint":"https://a.example/par","#
            + #""require_pushed_authorization_requests":true}"#
        let provider = try Secret(utf8: text).decode(ProviderMetadata.self)
        #expect(provider.pushedAuthorizationRequestEndpoint == "https://a.example/par")
        #expect(provider.requiresPushedAuthorizationRequests)
        #expect(try Secret(encoding: provider).decode(ProviderMetadata.self) == provider)
    }
}
#endif
