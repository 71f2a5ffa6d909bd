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

    @Test(arguments: [
        ("jwks_uri", "the key set's address"), ("revocation_endpoint", "the revocation endpoint"),
        ("authorization_endpoint", "the authorization endpoint"),
        ("device_authorization_endpoint", "the device authorization endpoint"),
    ])
    func endpointsWithoutEncryptionAreRefused(_ member: String, _ name: String) async throws {
        for address in ["http://a.example/x", "javascript:alert(1)", "file:///etc/passwd", ""] {
            let server = try await server(#","\#(member)":"\#(address)""#)
            #expect(
                await failure { () async throws(OAuthError) in try await discover(server.origin) }
                    == .invalidMetadata(name))
        }
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

    @Test func redirectionsAreNotFollowed() async throws {
        let real = try await server()
        let server = try await ScriptedServer(
            always: .init(
                status: 302, headers: [("Location", "\(real.origin)/.well-known/openid-configuration")]))
        #expect(
            await failure { () async throws(OAuthError) in try await discover(server.origin) }
                == .malformedResponse("the status"))
        #expect(real.asked.isEmpty)
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
            authorizationResponseIssParameterSupported: true)
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
