#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

@testable import TokenVaultOAuth

/// Tokens of the client itself (RFC 6749 section 4.4), and their renewal.
@Suite(.tags(.provider), .from(.all)) struct ClientCredentialsTests {
    private let secret = ClientAuthentication.clientSecretPost(Secret(utf8: "fake-secret"))

    /// Answers each request with another token.
    private static func server() async throws -> ScriptedServer {
        let count = Counter()
        return try await ScriptedServer { _ in
            .json(#"{"access_token":"fake-\#(count.next())","token_type":"Bearer","expires_in":60}"#)
        }
    }

    @Test func aDueTokenIsRequestedAgain() async throws {
        let server = try await Self.server()
        let clock = TestClock()
        let client = try client(server, authentication: secret, clock: clock)
        let signedIn = try await client.clientCredentials(scopes: ["read", "write"])
        #expect(signedIn.tokens.isOfClient && signedIn.tokens.refreshToken == nil)
        var configuration = TokenManager.Configuration()
        configuration.clock = clock.read
        let storage = InMemoryTokenStorage(service: "s")
        let manager = client.tokenManager(storage: storage, account: "a", configuration: configuration)
        try await manager.updateTokens(signedIn.tokens)
        #expect(try await manager.validAccessToken() == "fake-1")
        #expect(server.asked.count == 1)
        clock.advance(59)
        #expect(try await manager.validAccessToken() == "fake-2")
        // Another manager also renews the expired token.
        clock.advance(3_600)
        let other = client.tokenManager(storage: storage, account: "a", configuration: configuration)
        let tokens = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<100 { group.addTask { try? await other.validAccessToken() } }
            return await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(tokens == ["fake-3"] && server.asked.count == 3)
        #expect(try await other.currentTokens()?.isOfClient == true)
        for asked in server.asked {
            #expect(
                asked.form == [
                    "grant_type": "client_credentials", "scope": "read write", "client_id": "fake-client",
                    "client_secret": "fake-secret",
                ])
        }
    }

    /// No refresh token was refused, so the client may ask again.
    @Test func aRefusalEndsNoSession() async throws {
        let server = try await ScriptedServer(
            always: .json(#"{"error":"invalid_grant"}"#, status: 400))
        let clock = TestClock()
        let client = try client(server, authentication: secret, clock: clock)
        var configuration = TokenManager.Configuration()
        configuration.clock = clock.read
        let manager = client.tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a", configuration: configuration)
        var tokens = TokenInfo(accessToken: "fake", accessTokenExpiry: clock.now.addingTimeInterval(-1))
        tokens.clientScopes = []
        try await manager.updateTokens(tokens)
        let error = await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        guard case .refreshFailed(let failure, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.kind == .refused("invalid_grant"))
        #expect(try await manager.currentTokens() != nil)
    }

    /// The profile's parameters and scopes are in each request. A refresh token could end although the client's own
    /// secret is good, and an ID token would be about no user.
    @Test func aProfileAsksTheSameEachTime() async throws {
        let server = try await ScriptedServer(
            always: .json(
                #"{"access_token":"fake","token_type":"Bearer","expires_in":60,"scope":"read","#
                    + #""refresh_token":"fake-refresh","id_token":"e30.e30.e30"}"#))
        var settings = SignInSettings(issuer: server.origin, clientID: "fake-client")
        settings.endpoints = ProviderEndpoints(token: "\(server.origin)/token")
        settings.flow = .clientCredentials
        settings.clientSecret = "fake-secret"
        settings.scopes = ["read", "write"]
        settings.parameters = ["audience": "my api"]
        settings.resources = ["urn:a"]
        let provider = OAuthSessionProvider { _ in }
        let signedIn = try await provider.authorize(settings, within: .seconds(3_600))
        let tokens = signedIn.tokens
        #expect(tokens.isOfClient && tokens.refreshToken == nil && tokens.idToken == nil)
        #expect(signedIn.user == nil)
        #expect(tokens.clientScopes == ["read", "write"] && tokens.scope == "read")
        let renewed = try await provider.refresh(
            RefreshRequest(
                forwarding: "", scope: tokens.clientScopes?.joined(separator: " "), idToken: nil,
                isRetryOfUnknownOutcome: false),
            of: signedIn.profile, within: .seconds(3_600))
        #expect(renewed.refreshToken == nil && renewed.idToken == nil)
        #expect(server.asked.count == 2)
        for asked in server.asked {
            #expect(
                asked.form == [
                    "grant_type": "client_credentials", "scope": "read write", "audience": "my api",
                    "resource": "urn:a",
                ])
        }
    }

    /// The provider may have issued a token, which the caller has to be able to say.
    @Test func aLostAnswerIsNotForgotten() async throws {
        let server = try await ScriptedServer(always: .dropped)
        let client = try client(server, authentication: secret)
        let failures = [
            await failure { () async throws(OAuthError) in try await client.clientCredentials() },
            await failure { () async throws(OAuthError) in
                try await client.exchange(Secret(utf8: "fake"))
            },
        ]
        for error in failures {
            guard case .requestFailed(let failed) = error else {
                Issue.record("another error")
                return
            }
            #expect(failed.kind == .interrupted && failed.mayLeaveSession)
        }
    }
}
#endif
