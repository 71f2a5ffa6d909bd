#if OAuth
import Foundation
import NIOHTTP1
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// What a provider says of itself, and what is believed of that.
@Suite(.tags(.provider), .from(.all)) struct DiscoveryTests {
    let transport = OAuthTransport()

    private func discover(
        _ issuer: String, at places: [ProviderMetadata.WellKnown] = ProviderMetadata.WellKnown.allCases
    ) async throws(OAuthError) -> ProviderMetadata {
        try await ProviderMetadata.discover(issuer: issuer, at: places, transport: transport)
    }

    /// A server whose document has these members beside what it needs.
    private func server(
        issuer: String? = nil, _ members: String = "", at path: String = "/.well-known/openid-configuration"
    ) async throws -> ScriptedServer {
        try await ScriptedServer { asked in
            guard asked.path == path else { return .json("{}", status: 404) }
            let origin = "http://\(asked.headers.first(name: "Host") ?? "")"
            return .json(
                #"{"issuer":"\#(issuer ?? origin)","token_endpoint":"\#(origin)/token"\#(members)}"#)
        }
    }

    @Test(arguments: [
        ("https://a.example", "https://a.example/.well-known/openid-configuration", true),
        ("https://a.example/", "https://a.example/.well-known/openid-configuration", true),
        ("https://a.example/t/1", "https://a.example/t/1/.well-known/openid-configuration", true),
        ("https://a.example", "https://a.example/.well-known/oauth-authorization-server", false),
        ("https://a.example:8/t/1", "https://a.example:8/.well-known/oauth-authorization-server/t/1", false),
        ("https://a.example/t/", "https://a.example/.well-known/oauth-authorization-server/t", false),
    ])
    func documentsAreWhereTheStandardsSay(_ issuer: String, _ address: String, _ isOpenID: Bool) throws {
        let place: ProviderMetadata.WellKnown = isOpenID ? .openIDConfiguration : .oauthAuthorizationServer
        #expect(place.address(of: try #require(WebAddress.secure(issuer))) == address)
    }

    @Test func aDocumentIsRead() async throws {
        let server = try await server(
            #","jwks_uri":"https://k.example/k","code_challenge_methods_supported":["S256"],"#
                + #""authorization_response_iss_parameter_supported":true,"new_member":{"a":[1]}"#)
        let found = try await discover(server.origin)
        #expect(found.issuer == server.origin)
        #expect(found.tokenEndpoint == "\(server.origin)/token")
        #expect(found.jwksURI == "https://k.example/k")
        #expect(found.codeChallengeMethodsSupported == ["S256"])
        #expect(found.authorizationResponseIssParameterSupported)
        #expect(found.deviceAuthorizationEndpoint == nil)
    }

    @Test func theSecondPlaceIsAskedWhenTheFirstHasNone() async throws {
        let server = try await server(at: "/.well-known/oauth-authorization-server")
        #expect(try await discover(server.origin).issuer == server.origin)
        #expect(server.asked.count == 2)
        #expect(
            await failure { () async throws(OAuthError) in
                try await discover(server.origin, at: [.openIDConfiguration])
            }
                == .unsupported("metadata at this issuer"))
    }

    @Test(arguments: ["https://other.example", "http://127.0.0.1", "", "HTTP"])
    func aProviderThatSpeaksForAnotherIsRefused(_ issuer: String) async throws {
        let server = try await server(issuer: issuer)
        #expect(
            await failure { () async throws(OAuthError) in try await discover(server.origin) }
                == .issuerDiffers(.otherName))
    }

    @Test func anIssuerIsComparedByteForByte() async throws {
        let server = try await server()
        #expect(
            await failure { () async throws(OAuthError) in try await discover("\(server.origin)/") }
                == .issuerDiffers(.slashInIssuer))
        let other = try await self.server(issuer: server.origin)
        #expect(
            await failure { () async throws(OAuthError) in try await discover(other.origin) }
                == .issuerDiffers(.otherName))
    }

    /// Discovery leaves unusable optional endpoints out. Only their use fails.
    @Test(arguments: [
        #""http://a.example/x""#, #""javascript:alert(1)""#, #""file:///etc/passwd""#, #""""#, "7", "{}",
    ])
    func optionalEndpointsThatCannotBeUsedAreLeftOut(_ address: String) async throws {
        let members = [
            "jwks_uri", "revocation_endpoint", "authorization_endpoint", "device_authorization_endpoint",
            "userinfo_endpoint", "end_session_endpoint",
        ]
        let server = try await server(members.map { #","\#($0)":\#(address)"# }.joined())
        let found = try await discover(server.origin)
        #expect(
            [found.jwksURI, found.revocationEndpoint, found.authorizationEndpoint].allSatisfy { $0 == nil })
        #expect(
            [found.deviceAuthorizationEndpoint, found.userInfoEndpoint, found.endSessionEndpoint].allSatisfy {
                $0 == nil
            })
        let client = try OAuthClient(provider: found, clientID: "a", transport: transport)
        // A kept document says the same.
        #expect(
            try JSONDecoder().decode(ProviderMetadata.self, from: try JSONEncoder().encode(found)) == found)
        let revoke = try #require(client.revokeRequestProvider)
        let refused = await #expect(throws: RefreshFailure.self) {
            try await revoke(TokenInfo(accessToken: "fake"))
        }
        #expect(refused?.kind == .refused("no_usable_endpoint"))
        #expect(
            await failure { () async throws(OAuthError) in try await client.authorizeDevice(scopes: []) }
                == .invalidMetadata("the device authorization endpoint"))
        #expect(
            await failure { () async throws(OAuthError) in
                try client.authorizationRequest(redirectURI: "http://127.0.0.1:1/c", scopes: [])
            } == .invalidMetadata("the authorization endpoint"))
        let token = try #require(SigningKey.make("ES256")).sign("{}")
        #expect(
            await failure { () async throws(OAuthError) in try await client.idTokenValidator.validate(token) }
                == .invalidMetadata("the key set's address"))
    }

    /// A provider could name another provider's page to obtain its codes (RFC 9700 section 4.4). Covers each
    /// endpoint, and a fetched document that lists its own allowed origins.
    @Test(arguments: ["authorization_endpoint", "device_authorization_endpoint"])
    func foreignEndpointsAreRejectedUnlessAllowed(_ member: String) async throws {
        let server = try await server(
            #","\#(member)":"https://honest.example/sign-in","tokenvault_allowed_origins":["https://honest.example"]"#
        )
        func refusal(_ provider: ProviderMetadata) async throws -> OAuthError? {
            let client = try OAuthClient(provider: provider, clientID: "a", transport: transport)
            return await failure { () async throws(OAuthError) in
                guard member == "authorization_endpoint" else {
                    _ = try await client.authorizeDevice(scopes: [])
                    return
                }
                _ = try client.authorizationRequest(redirectURI: "http://127.0.0.1:1/c", scopes: [])
            }
        }
        let found = try await discover(server.origin)
        #expect(try await refusal(found) == .foreignEndpoint("https://honest.example"))
        // Neither a port nor a scheme is left out of the comparison.
        for origin in ["https://honest.example:8443", "https://example", "https://other.example"] {
            let found = try await ProviderMetadata.discover(
                issuer: server.origin, allowing: [origin], transport: transport)
            #expect(try await refusal(found) == .foreignEndpoint("https://honest.example"))
        }
        let allowed = try await ProviderMetadata.discover(
            issuer: server.origin, allowing: ["https://honest.example"], transport: transport)
        let kept = try JSONDecoder().decode(ProviderMetadata.self, from: try JSONEncoder().encode(allowed))
        #expect(kept == allowed)
        #expect(kept.allowedOrigins == [.https("honest.example")])
        if member == "authorization_endpoint" { #expect(try await refusal(kept) == nil) }
        let refused = await failure { () async throws(OAuthError) in
            try await ProviderMetadata.discover(
                issuer: server.origin, allowing: ["honest.example"], transport: transport)
        }
        #expect(refused == .invalid("an allowed origin"))
    }

    @Test func optionalListsOfAnotherTypeCountAsAbsent() async throws {
        let server = try await server(
            #","scopes_supported":"a b","code_challenge_methods_supported":null,"grant_types_supported":[1],"#
                + #""authorization_response_iss_parameter_supported":null,"token_endpoint_auth_methods_supported":null"#
        )
        let found = try await discover(server.origin)
        #expect(found.scopesSupported == nil && found.codeChallengeMethodsSupported == nil)
        #expect(found.grantTypesSupported == nil && found.tokenEndpointAuthMethodsSupported == nil)
        #expect(!found.authorizationResponseIssParameterSupported)
    }

    /// These members protect against mix-up and code injection (RFC 9207, RFC 7636), so a wrong type is an error.
    @Test(arguments: [
        #""authorization_response_iss_parameter_supported":"true""#,
        #""code_challenge_methods_supported":"plain""#,
    ])
    func aProtectingMemberOfAnotherTypeIsRefused(_ member: String) async throws {
        let server = try await server(",\(member)")
        #expect(
            await failure { () async throws(OAuthError) in try await discover(server.origin) }
                == .invalidMetadata("the document"))
    }

    /// Discovery fails without a usable token endpoint.
    @Test(arguments: [#""http://a.example/x""#, "7", "null"])
    func theTokenEndpointIsNotOptional(_ address: String) async throws {
        let server = try await ScriptedServer { asked in
            .json(
                #"{"issuer":"http://\#(asked.headers.first(name: "Host") ?? "")","token_endpoint":\#(address)}"#
            )
        }
        #expect(
            await failure { () async throws(OAuthError) in try await discover(server.origin) }
                == .invalidMetadata("the token endpoint"))
    }

    /// After any 4xx, and after a body without metadata, discovery asks the next place.
    @Test(arguments: [400, 401, 403, 404, 405, 406, 410, 200])
    func everyPlaceIsAsked(_ status: Int) async throws {
        let places = [
            "/t/1/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/t/1",
            "/.well-known/openid-configuration/t/1", "/t/1/.well-known/oauth-authorization-server",
        ]
        for place in places {
            let server = try await ScriptedServer { asked in
                guard asked.path == place else { return .json("<html>", status: status) }
                let origin = "http://\(asked.headers.first(name: "Host") ?? "")"
                return .json(#"{"issuer":"\#(origin)/t/1","token_endpoint":"\#(origin)/token"}"#)
            }
            #expect(try await discover("\(server.origin)/t/1").issuer == "\(server.origin)/t/1")
            #expect(server.asked.map(\.path) == Array(places.prefix { $0 != place }) + [place])
        }
    }

    /// The error is that of the first document, not of the places without a document.
    @Test func theFirstDocumentsProblemIsReported() async throws {
        let server = try await server(
            issuer: "https://other.example", at: "/t/.well-known/openid-configuration")
        #expect(
            await failure { () async throws(OAuthError) in try await discover("\(server.origin)/t") }
                == .issuerDiffers(.otherName))
        #expect(server.asked.count == 4)
        let tenants = try await self.server(issuer: "https://login.example/{tenantid}/v2.0")
        #expect(
            await failure { () async throws(OAuthError) in try await discover(tenants.origin) }
                == .issuerDiffers(.tenantPlaceholder))
        #expect(OAuthError.issuerDiffers(.tenantPlaceholder).description.contains("{tenantid}"))
    }

    /// What is on this machine is reached in clear by a provider of this machine alone.
    @Test func aProviderElsewhereHasNoEndpointHere() {
        #expect(throws: OAuthError.invalidMetadata("the token endpoint")) {
            try ProviderMetadata(issuer: "https://a.example", tokenEndpoint: "http://127.0.0.1/token")
        }
    }

    @Test(arguments: ["http://a.example", "a.example", "https://a.example?x=1", "https://a.example#f", ""])
    func issuersThatAreNoneAreNotAsked(_ issuer: String) async {
        #expect(
            await failure { () async throws(OAuthError) in try await discover(issuer) }
                == .invalid("the issuer"))
    }

    @Test(arguments: ["", "[]", "{", #"{"issuer":7}"#, "<html>"])
    func documentsThatAreNoneAreRefused(_ body: String) async throws {
        let server = try await ScriptedServer(always: .json(body))
        #expect(
            await failure { () async throws(OAuthError) in try await discover(server.origin) }
                == .invalidMetadata("the document"))
    }

    @Test func aDocumentThatNeverEndsIsNotReadToTheEnd() async throws {
        let server = try await ScriptedServer(
            always: .json("{\"issuer\":\"" + String(repeating: "x", count: 1 << 20) + "\"}"))
        #expect(
            await failure { () async throws(OAuthError) in try await discover(server.origin) }
                == .requestFailed(RefreshFailure(.unusable(200))))
    }

    /// The error names the new address, and the user decides.
    @Test func redirectionsAreNotFollowed() async throws {
        let real = try await server()
        let moved = "\(real.origin)/.well-known/openid-configuration"
        for status in [301, 302, 303, 307, 308] {
            let server = try await ScriptedServer(
                always: .init(status: status, headers: [("Location", moved)]))
            #expect(
                await failure { () async throws(OAuthError) in try await discover(server.origin) }
                    == .redirected(to: moved))
            let within = try await ScriptedServer(
                always: .init(status: status, headers: [("Location", "/new/x")]))
            #expect(
                await failure { () async throws(OAuthError) in try await discover(within.origin) }
                    == .redirected(to: "\(within.origin)/new/x"))
        }
        #expect(real.asked.isEmpty)
    }

    @Test(arguments: [
        "http://a.example/x", "javascript:alert(1)", "//other.example/x", "x", "https://a.example/\u{202e}",
        "https://a.example/" + String(repeating: "x", count: 400),
    ])
    func aRedirectionThatCannotBeShownIsNot(_ location: String) async throws {
        let server = try await ScriptedServer(always: .init(status: 302, headers: [("Location", location)]))
        #expect(
            await failure { () async throws(OAuthError) in try await discover(server.origin) }
                == .redirected(to: nil))
    }

    /// A program keeps the metadata between runs; what it reads back is looked at again.
    @Test func metadataIsKeptAndReadBack() throws {
        let whole = try ProviderMetadata(
            issuer: "https://a.example", authorizationEndpoint: "https://a.example/a",
            tokenEndpoint: "https://a.example/t", deviceAuthorizationEndpoint: "https://a.example/d",
            revocationEndpoint: "https://a.example/r", jwksURI: "https://a.example/k",
            userInfoEndpoint: "https://a.example/u", endSessionEndpoint: "https://a.example/e",
            scopesSupported: ["a"], codeChallengeMethodsSupported: ["S256"], grantTypesSupported: ["b"],
            tokenEndpointAuthMethodsSupported: ["none"], idTokenSigningAlgValuesSupported: ["RS256"],
            dpopSigningAlgValuesSupported: ["ES256"], authorizationResponseIssParameterSupported: true)
        for metadata in [
            whole, try ProviderMetadata(issuer: "https://a.example", tokenEndpoint: "https://a.example/t"),
        ] {
            let written = try JSONEncoder().encode(metadata)
            #expect(try JSONDecoder().decode(ProviderMetadata.self, from: written) == metadata)
        }
        let forged = Data(#"{"issuer":"https://a.example","token_endpoint":"http://evil.example/t"}"#.utf8)
        #expect(throws: OAuthError.invalidMetadata("the token endpoint")) {
            try JSONDecoder().decode(ProviderMetadata.self, from: forged)
        }
    }
}
#endif
