#if OAuth
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

@testable import TokenVaultOAuth

/// Token exchange (RFC 8693) and the end-session address.
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
