#if OAuth
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// A provider's own parameters, and the services that tokens are for (RFC 8707 section 2).
@Suite(.tags(.provider), .from(.all)) struct ParameterTests {
    private static let codes = #"""
        {"device_code":"fake-device","user_code":"FAKE-CODE","expires_in":600,"interval":5,
         "verification_uri":"https://a.example/device"}
        """#

    private static var parameters: RequestParameters {
        var parameters = RequestParameters()
        parameters.resources = ["https://api.example/a", "urn:example:b"]
        parameters.authorization = ["audience": "my api", "prompt": "consent"]
        parameters.token = ["tenant": "fake tenant"]
        return parameters
    }

    private static let resources = "resource=https%3A%2F%2Fapi.example%2Fa&resource=urn%3Aexample%3Ab"

    private func client(
        _ origin: String, _ parameters: RequestParameters = Self.parameters
    ) throws(OAuthError) -> OAuthClient {
        try OAuthClient(
            provider: try ProviderMetadata(
                issuer: origin, authorizationEndpoint: "\(origin)/authorize",
                tokenEndpoint: "\(origin)/token",
                deviceAuthorizationEndpoint: "\(origin)/device", revocationEndpoint: "\(origin)/revoke"),
            clientID: "fake", authentication: .clientSecretPost(Secret(utf8: "fake-secret")),
            parameters: parameters, transport: OAuthTransport(), sleep: { _ in })
    }

    @Test func eachRequestHasItsParameters() async throws {
        let server = try await ScriptedServer { asked in
            asked.path == "/device" ? .json(Self.codes) : .json(tokenAnswer)
        }
        let client = try client(server.origin)
        let request = try client.authorizationRequest(
            redirectURI: "http://127.0.0.1:1/cb", scopes: ["a"], parameters: ["prompt": "login"])
        #expect(request.url.contains("audience=my+api&prompt=login&\(Self.resources)"), "\(request.url)")
        #expect(!request.url.contains("tenant"))
        let state = try #require(request.state.unprotectedText())
        _ = try await client.signIn(request, callback: "?code=fake&state=\(state)")
        _ = try await client.signIn(with: try await client.authorizeDevice(scopes: []))
        _ = try await refreshRequest(client).get()
        _ = try await client.clientCredentials()
        let revoke = try #require(client.revokeRequestProvider)
        try await revoke(TokenInfo(accessToken: "fake"))
        for asked in server.asked {
            let isOfTokens = asked.path == "/token"
            #expect(asked.body.contains(Self.resources) == (asked.path != "/revoke"), "\(asked)")
            #expect(asked.body.contains("audience=my+api&prompt=consent") == (asked.path == "/device"))
            #expect(asked.body.contains("tenant=fake+tenant") == isOfTokens, "\(asked)")
        }
        #expect(server.asked.map(\.path) == ["/token", "/device", "/token", "/token", "/token", "/revoke"])
    }

    @Test func reservedParametersAreRejected() throws {
        for name in [
            "client_id", "code_verifier", "dpop_jkt", "refresh_token", "scope", "resource", "", "a b",
            "\u{e4}",
        ] {
            var parameters = RequestParameters()
            parameters.token = [name: "x"]
            #expect(throws: OAuthError.invalid("a parameter")) {
                try client("https://id.example", parameters)
            }
            parameters.token = [:]
            parameters.authorization = [name: "x"]
            #expect(throws: OAuthError.invalid("a parameter")) {
                try client("https://id.example", parameters)
            }
        }
        for resource in ["", "api.example", "/a", "https://api.example/#a", "https://api.example/ a", ":a"] {
            var parameters = RequestParameters()
            parameters.resources = [resource]
            #expect(throws: OAuthError.invalid("a resource")) { try client("https://id.example", parameters) }
        }
    }
}
#endif
