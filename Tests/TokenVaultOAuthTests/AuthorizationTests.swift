#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// The request a browser carries and the answer it brings back.
@Suite(.tags(.provider), .from(.all)) struct AuthorizationTests {
    let transport = OAuthTransport()

    private func client(
        _ methods: [String]? = ["S256"], iss: Bool = false,
        authorization: String = "https://id.example/authorize"
    ) throws -> OAuthClient {
        let provider = try ProviderMetadata(
            issuer: "https://id.example", authorizationEndpoint: authorization,
            tokenEndpoint: "https://id.example/token", codeChallengeMethodsSupported: methods,
            authorizationResponseIssParameterSupported: iss)
        return try OAuthClient(provider: provider, clientID: "fake client", transport: transport)
    }

    private func fields(_ request: AuthorizationRequest) throws -> [String: String] {
        try #require(FormEncoding.decode(request.url.split(separator: "?", maxSplits: 1)[1]))
    }

    @Test func aRequestHasAllThatGuardsIt() throws {
        let client = try client()
        let request = try client.authorizationRequest(
            redirectURI: "http://127.0.0.1:1/callback", scopes: ["openid", "email"],
            parameters: ["prompt": "login"])
        let fields = try fields(request)
        #expect(fields["response_type"] == "code")
        #expect(fields["client_id"] == "fake client")
        #expect(fields["redirect_uri"] == "http://127.0.0.1:1/callback")
        #expect(fields["scope"] == "openid email")
        #expect(fields["code_challenge_method"] == "S256")
        #expect(fields["code_challenge"] == request.proofKey.challenge)
        #expect(fields["state"] == request.state.unprotectedText())
        #expect(fields["nonce"] == request.nonce?.unprotectedText())
        #expect(fields["prompt"] == "login")
        #expect(!request.url.contains(try #require(request.proofKey.verifier.unprotectedText())))
        let other = try self.fields(
            try client.authorizationRequest(redirectURI: "http://127.0.0.1:1/callback", scopes: ["openid"]))
        for name in ["state", "nonce", "code_challenge"] { #expect(other[name] != fields[name]) }
    }

    @Test func anEndpointWithAQueryKeepsIt() throws {
        let request = try client(authorization: "https://id.example/a?tenant=1").authorizationRequest(
            redirectURI: "app.example:/cb", scopes: [])
        #expect(try fields(request)["tenant"] == "1")
        #expect(try fields(request)["nonce"] == nil)
    }

    @Test(arguments: [["plain"], [], ["s256"]])
    func aProviderWithoutS256IsNotUsed(_ methods: [String]) throws {
        let client = try client(methods)
        #expect(throws: OAuthError.unsupported("PKCE with S256")) {
            try client.authorizationRequest(redirectURI: "http://127.0.0.1/cb", scopes: [])
        }
    }

    @Test func aProviderThatDoesNotSayIsAskedWithS256() throws {
        let request = try client(nil).authorizationRequest(redirectURI: "https://a.example/cb", scopes: [])
        #expect(try fields(request)["code_challenge_method"] == "S256")
    }

    @Test func nothingThatGuardsARequestIsReplaced() throws {
        let client = try client()
        for name in ["state", "nonce", "code_challenge_method", "redirect_uri", "request_uri"] {
            #expect(throws: OAuthError.invalid("a parameter")) {
                try client.authorizationRequest(
                    redirectURI: "https://a.example/cb", scopes: [], parameters: [name: "x"])
            }
        }
        for address in ["http://a.example/cb", "https://a.example/cb#f", "nothing", "https://a.example/ b"] {
            #expect(throws: OAuthError.invalid("the redirection address")) {
                try client.authorizationRequest(redirectURI: address, scopes: [])
            }
        }
        for scope in ["", "a b", "a\"", "ä"] {
            #expect(throws: OAuthError.invalid("a scope")) {
                try client.authorizationRequest(redirectURI: "https://a.example/cb", scopes: [scope])
            }
        }
    }

    private func answer(_ query: String, iss: Bool = false) throws(OAuthError) -> AuthorizationAnswer {
        guard let provider = try? client(iss: iss).provider else { throw .invalid("the test") }
        return try AuthorizationAnswer(query: query, expecting: Secret(utf8: "fake-state"), from: provider)
    }

    @Test func answersAreRead() throws {
        #expect(try answer("code=fake-code&state=fake-state").code() == "fake-code")
        #expect(try answer("code=c&state=fake-state&iss=https%3A%2F%2Fid.example", iss: true).code() == "c")
        for iss in [false, true] {
            #expect(throws: OAuthError.accessDenied) {
                try answer("error=access_denied&state=fake-state", iss: iss).code()
            }
        }
        #expect(throws: OAuthError.authorizationRefused("invalid_scope")) {
            try answer("error=invalid_scope&state=fake-state&error_description=x").code()
        }
        // The error does not repeat an arbitrary text of the server.
        #expect(throws: OAuthError.authorizationRefused("unknown_error")) {
            try answer("error=%1B%5B2J&state=fake-state").code()
        }
    }

    @Test(arguments: [
        ("code=c", OAuthError.wrongState), ("code=c&state=", .wrongState), ("code=c&state=fake", .wrongState),
        ("error=access_denied", .wrongState), ("", .wrongState),
        ("code=c&state=fake-state&iss=https%3A%2F%2Fother.example", .wrongIssuer),
        ("code=c&state=fake-state&iss=https%3A%2F%2Fid.example%2F", .wrongIssuer),
        ("code=c&code=d&state=fake-state", .malformedResponse("the query")),
        ("state=fake-state", .malformedResponse("the code")),
        ("error=access_denied&state=fake-state&iss=https%3A%2F%2Fother.example", .wrongIssuer),
        ("code=&state=fake-state", .malformedResponse("the code")),
        ("code=%0A&state=fake-state", .malformedResponse("the code")),
    ])
    func answersToOthersAreRefused(_ query: String, _ error: OAuthError) {
        #expect(throws: error) { try answer(query) }
    }

    /// RFC 9207 section 2.4.
    @Test func aProviderThatNamesItselfHasToDoSo() {
        #expect(throws: OAuthError.wrongIssuer) { try answer("code=c&state=fake-state", iss: true) }
    }

    @Test func clientsThatCannotBeAreRefused() throws {
        let provider = try client().provider
        for name in ["", "ä", "a\n"] {
            #expect(throws: OAuthError.invalid("the client's name")) {
                try OAuthClient(provider: provider, clientID: name, transport: transport)
            }
        }
        #expect(throws: OAuthError.invalid("the client's secret")) {
            try OAuthClient(
                provider: provider, clientID: "a", authentication: .clientSecretPost(Secret([0xff])),
                transport: transport)
        }
    }
}
#endif
