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

    /// Many providers offer it and refuse it for some clients. A requirement is another matter.
    @Test(arguments: [
        ScriptedServer.Reply.json(#"{"error":"invalid_request"}"#, status: 400), .json("{}", status: 201),
        .json(#"{"request_uri":"a b"}"#, status: 201), .init(status: 404), .dropped,
        .json(#"{"request_uri":7}"#), .json(#"{"request_uri":"\#(String(repeating: "a", count: 513))"}"#),
    ])
    func aRefusalCountsWhereItIsRequired(_ reply: ScriptedServer.Reply) async throws {
        let server = try await ScriptedServer(always: reply)
        let client = try client(server)
        let request = try request(client)
        #expect(try await client.pushed(request).url == request.url)
        let strict = try self.client(server, required: true)
        #expect(await failure { () async throws(OAuthError) in try await strict.pushed(request) } != nil)
        #expect(server.asked.count >= 2)
    }

    @Test func withoutAnEndpointNothingIsPushed() async throws {
        let server = try await ScriptedServer(always: .dropped)
        let client = try client(server, endpoint: nil)
        let request = try request(client)
        #expect(try await client.pushed(request).url == request.url)
        let strict = try self.client(server, required: true, endpoint: nil)
        #expect(
            await failure { () async throws(OAuthError) in try await strict.pushed(request) }
                == .unsupported("pushed requests"))
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

/// Exchanges of a token for another service's (RFC 8693), and the end of the browser's own session.
@Suite(.tags(.provider), .from(.all)) struct ExchangeTests {
    private func client(
        _ origin: String, grants: [String]? = nil, endSession: String? = nil
    ) throws(OAuthError) -> OAuthClient {
        try OAuthClient(
            provider: try ProviderMetadata(
                issuer: origin, tokenEndpoint: "\(origin)/token", endSessionEndpoint: endSession,
                grantTypesSupported: grants),
            clientID: "fake", transport: OAuthTransport())
    }

    @Test func aTokenIsExchanged() async throws {
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let grant = "urn:ietf:params:oauth:grant-type:token-exchange"
        let client = try client(server.origin, grants: [grant])
        let result = try await client.exchange(
            Secret(utf8: "fake-old"), audience: "other api", resources: ["urn:a", "urn:b"], scopes: ["read"])
        #expect(result.tokens.accessToken == "fake-access" && result.tokens.scope == "read")
        let body = try #require(server.asked.first).body
        for part in [
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange", "subject_token=fake-old",
            "subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token",
            "requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token",
            "audience=other+api", "resource=urn%3Aa&resource=urn%3Ab", "scope=read", "client_id=fake",
        ] {
            #expect(body.contains(part), "\(body)")
        }
    }

    @Test func whatCannotBeExchangedIsNotSent() async throws {
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let other = try client(server.origin, grants: ["authorization_code"])
        #expect(
            await failure { () async throws(OAuthError) in try await other.exchange(Secret(utf8: "fake")) }
                == .unsupported("token exchange"))
        let client = try client(server.origin)
        for (token, resource, scope, what) in [
            ("", "urn:a", "a", "the token"), ("fake", "a", "a", "a resource"),
            ("fake", "urn:a", "a b", "a scope"),
        ] {
            #expect(
                await failure { () async throws(OAuthError) in
                    try await client.exchange(
                        Secret(utf8: token), resources: [resource], scopes: [scope])
                } == .invalid(what))
        }
        #expect(server.asked.isEmpty)
    }

    @Test func aBrowserIsSignedOut() throws {
        let client = try client("https://a.example", endSession: "https://a.example/end?tenant=b")
        #expect(try client.endSessionAddress() == "https://a.example/end?tenant=b&client_id=fake")
        #expect(
            try client.endSessionAddress(
                idToken: Secret(utf8: "a.b.c"), redirectURI: "http://127.0.0.1/out")
                == "https://a.example/end?tenant=b&client_id=fake&id_token_hint=a.b.c"
                + "&post_logout_redirect_uri=http%3A%2F%2F127.0.0.1%2Fout")
        let (none, foreign) = (
            try self.client("https://a.example"),
            try self.client("https://a.example", endSession: "https://b.example/end")
        )
        #expect(throws: OAuthError.unsupported("signing out in a browser")) { try none.endSessionAddress() }
        #expect(throws: OAuthError.foreignEndpoint("https://b.example")) {
            try foreign.endSessionAddress()
        }
    }
}
#endif
