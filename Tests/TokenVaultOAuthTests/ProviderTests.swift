#if OAuth
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestLanes
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// All of it against a real provider: django-oauth-toolkit, with rotation and reuse detection on.
@Suite(.tags(.provider), .from(.all), .serialized) struct ProviderTests {
    let provider: RunningProvider

    init() throws { provider = try RunningProvider() }

    private func configuration() -> TokenManager.Configuration {
        var configuration = TokenManager.Configuration()
        configuration.refreshTimeout = .seconds(3_600)
        configuration.leaseTimeout = .seconds(3_600)
        return configuration
    }

    private func echo(_ token: String) async throws -> HTTPResponseStatus {
        var request = HTTPClientRequest(url: "\(provider.origin)/api/echo")
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        return try await HTTPClient.shared.execute(request, timeout: .seconds(3_600)).status
    }

    @Test(arguments: [.openIDConfiguration, .oauthAuthorizationServer] as [ProviderMetadata.WellKnown])
    func itIsDiscovered(_ place: ProviderMetadata.WellKnown) async throws {
        let found = try await ProviderMetadata.discover(
            issuer: provider.issuer, at: [place], transport: RunningProvider.transport())
        #expect(found.authorizationEndpoint != nil)
        #expect(found.deviceAuthorizationEndpoint != nil)
        #expect(found.revocationEndpoint != nil)
        #expect(found.codeChallengeMethodsSupported?.contains("S256") == true)
    }

    @Test func aPersonSignsInWithABrowser() async throws {
        let client = try await provider.client()
        let result = try await provider.signIn(client)
        let claims = try #require(result.claims)
        #expect(claims.issuer == provider.issuer)
        #expect(claims.subject == provider.facts["users"][0]["subject"].text)
        #expect(claims.email == "alice@example.com")
        #expect(result.tokens.refreshToken != nil)
        #expect(result.tokens.accessTokenExpiry != nil)
        #expect(result.serverDate != nil)
        #expect(try await echo(result.tokens.accessToken) == .ok)
    }

    @Test func aPersonSaysNo() async throws {
        let client = try await provider.client()
        let provider = provider
        let browser = RunningProvider.Browser()
        let error = await failure { () async throws(OAuthError) in
            try await client.signIn(scopes: ["openid"]) { address in
                browser.start { try await provider.have("deny", ["url": address]) }
            }
        }
        #expect(error == .accessDenied)
        #expect(try await browser.page()["body"].text.contains("Not signed in"))
    }

    /// The code was used: it is not accepted again, nor without the verifier.
    @Test func aCodeIsGoodOnceAndWithItsVerifier() async throws {
        let client = try await provider.client()
        let redirect = try await LoopbackRedirect.listen(for: client.provider)
        let request = try client.authorizationRequest(
            redirectURI: redirect.redirectURI, state: redirect.state, scopes: ["read"], parameters: [:])
        let provider = provider
        async let page = provider.have("browse", ["url": request.url])
        let answer = try await redirect.answer(within: .seconds(3_600))
        _ = try await page
        // The same request with another verifier.
        let forged = try client.authorizationRequest(
            redirectURI: redirect.redirectURI, state: redirect.state, scopes: [], parameters: [:])
        let refused = OAuthError.requestFailed(RefreshFailure(.refused("invalid_grant")))
        let first = await failure { () async throws(OAuthError) in
            try await client.exchange(answer, of: forged)
        }
        guard case .requestFailed(let failed) = first else {
            Issue.record("\(String(describing: first))")
            return
        }
        #expect(failed.kind == .refused("invalid_grant"))
        let second = await failure { () async throws(OAuthError) in
            _ = try await client.exchange(answer, of: request)
            _ = try await client.exchange(answer, of: request)
        }
        guard case .requestFailed(let again) = second else {
            Issue.record("\(String(describing: second)), not \(refused)")
            return
        }
        #expect(again.kind == .refused("invalid_grant"))
    }

    @Test func aDeviceSignsIn() async throws {
        let client = try await provider.client("device")
        let device = try await client.authorizeDevice(scopes: ["read"])
        async let signedIn = client.signIn(with: device)
        _ = try await provider.have("approve-device", ["user_code": device.userCode])
        let result = try await signedIn
        #expect(try await echo(result.tokens.accessToken) == .ok)
    }

    @Test func aDeviceIsRefused() async throws {
        let client = try await provider.client("device")
        let device = try await client.authorizeDevice(scopes: ["read"])
        _ = try await provider.have("deny-device", ["user_code": device.userCode])
        #expect(
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) }
                == .accessDenied)
    }

    @Test func aServiceSignsInByItself() async throws {
        let client = try await provider.client("service")
        let result = try await client.clientCredentials(scopes: ["read"])
        #expect(result.tokens.refreshToken == nil)
        #expect(try await echo(result.tokens.accessToken) == .ok)
    }

    @Test func aKeyIsRotated() async throws {
        let client = try await provider.client()
        _ = try await provider.signIn(client)
        try provider.tell("rotate-key")
        // The cool-down of a minute has not passed, so the test uses another validator.
        let other = try await provider.client()
        #expect(try await provider.signIn(other).claims != nil)
    }

    /// 10,000 tasks with an expired token: one request. The server tells a second one: it would be of a token that was used.
    @Test func tenThousandTasksRefreshOnce() async throws {
        let client = try await provider.client()
        let signedIn = try await provider.signIn(client)
        let manager = client.tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a", configuration: configuration())
        try await manager.updateTokens(signedIn.tokens.expired)
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10_000 { group.addTask { try await manager.validAccessToken() } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens.count == 1)
        #expect(tokens.first != signedIn.tokens.accessToken)
        #expect(try provider.requests("refresh_token") == 1)
        #expect(try await echo(try #require(tokens.first)) == .ok)
        #expect(try await manager.currentTokens()?.refreshToken != signedIn.tokens.refreshToken)
    }

    @Test func rotationGoesOnAndReuseEndsTheSession() async throws {
        let client = try await provider.client()
        let signedIn = try await provider.signIn(client)
        let manager = client.tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a", configuration: configuration())
        try await manager.updateTokens(signedIn.tokens)
        for _ in 0..<5 { try await manager.refreshTokens() }
        #expect(try await manager.currentTokens()?.idToken != nil)
        // A thief uses the first token.
        #expect(await refreshFailure(client, signedIn.tokens.refreshToken)?.kind == .invalidGrant)
        await #expect(throws: TokenError.sessionExpired) { try await manager.refreshTokens() }
        #expect(try await manager.isAuthenticated() == false)
    }

    private func refreshFailure(_ client: OAuthClient, _ token: String?) async -> RefreshFailure? {
        let request = RefreshRequest(
            account: "a", refreshToken: token ?? "", scope: nil, idToken: nil, isRetryOfUnknownOutcome: false)
        do {
            _ = try await client.refreshRequestProvider(request)
            return nil
        } catch {
            return error as? RefreshFailure
        }
    }

    @Test func aSessionIsRevoked() async throws {
        let client = try await provider.client()
        let signedIn = try await provider.signIn(client)
        let manager = client.tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a", configuration: configuration())
        try await manager.updateTokens(signedIn.tokens)
        #expect(try await echo(signedIn.tokens.accessToken) == .ok)
        try await manager.revokeTokens()
        #expect(try await manager.currentTokens() == nil)
        #expect(try await echo(signedIn.tokens.accessToken) != .ok)
        #expect(await refreshFailure(client, signedIn.tokens.refreshToken)?.kind == .invalidGrant)
    }

    @Test(arguments: [
        ("503", ["Retry-After": "7"], RefreshFailure.Kind.throttled), ("429", [:], .throttled),
        ("500", [:], .serverError(500)), ("drop-before", [:], .interrupted),
        ("drop-after", [:], .interrupted),
        ("garbage-json", [:], .unusable(200)),
    ])
    func faultsAreToldApart(_ how: String, _ headers: [String: String], _ kind: RefreshFailure.Kind)
        async throws
    {
        let client = try await provider.client()
        let signedIn = try await provider.signIn(client)
        try provider.tell("fail", ["path": "/o/token/", "how": how, "headers": headers])
        let failure = await refreshFailure(client, signedIn.tokens.refreshToken)
        #expect(failure?.kind == kind)
        #expect((failure?.retryAfter != nil) == (headers["Retry-After"] != nil))
    }

    /// The header, the renewal after a 401, and a redirection, against a resource that looks at tokens.
    @Test func requestsAreAuthorized() async throws {
        let client = try await provider.client()
        let signedIn = try await provider.signIn(client)
        let manager = client.tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a", configuration: configuration())
        try await manager.updateTokens(signedIn.tokens)
        let port = provider.facts["port"].number
        let api = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(
                manager: manager,
                allowedOrigins: [RequestOrigin(scheme: "http", host: "127.0.0.1", port: port)]))
        var request = HTTPClientRequest(url: "\(provider.origin)/api/echo")
        #expect(try await api.execute(request, timeout: .seconds(3_600)).status == .ok)
        try provider.tell("expire", ["token": signedIn.tokens.accessToken])
        request.method = .POST
        let again = try await api.execute(
            request, body: ByteBuffer(string: "twice"), timeout: .seconds(3_600))
        #expect(again.status == .ok)
        #expect(try provider.requests("refresh_token") == 1)
        let there = HTTPClientRequest(url: "\(provider.origin)/api/redirect?to=\(provider.origin)/api/echo")
        #expect(try await api.execute(there, timeout: .seconds(3_600)).status == .ok)
    }
}
#endif
