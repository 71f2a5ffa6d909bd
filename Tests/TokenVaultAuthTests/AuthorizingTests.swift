import Testing
import TokenVault

@testable import TokenVaultAuth

@Suite struct AuthorizingTests {
    private let scene = TestFixture()
    private let origin = RequestOrigin.https("api.example.com")

    private struct Request: AuthorizableRequest {
        var origin: RequestOrigin?
        var isReplayable = true
        var headers: [String: String] = [:]
        mutating func setHeader(_ name: String, to value: String) { headers[name] = value }
    }

    private func provider(_ server: RotatingServer, signedIn: Bool = true) async throws -> TokenAuthProvider {
        let manager = scene.manager(server)
        if signedIn { try await manager.updateTokens(scene.tokens()) }
        return TokenAuthProvider(
            manager: manager,
            allowedOrigins: [origin, RequestOrigin(scheme: "http", host: "api.example.com")])
    }

    @Test func theHeaderIsPutIn() async throws {
        let provider = try await provider(RotatingServer())
        let sent = try await provider.adapt(Request(origin: origin))
        #expect(sent.request.headers == ["Authorization": "Bearer access-0"])
    }

    @Test func nameAndPrefixAreTheCallers() async throws {
        let manager = scene.manager(RotatingServer())
        try await manager.updateTokens(scene.tokens())
        let bare = TokenAuthProvider(
            manager: manager, allowedOrigins: [origin], headerName: "X-Api-Key", tokenPrefix: nil)
        #expect(try await bare.adapt(Request(origin: origin)).request.headers == ["X-Api-Key": "access-0"])
    }

    @Test(arguments: [
        RequestOrigin?.none, .https("evil.example.com"), .https("api.example.com", port: 8443),
        .https("api.example.com.evil.example"), RequestOrigin(scheme: "http", host: "api.example.com"),
        RequestOrigin(scheme: "ftp", host: "api.example.com"),
    ])
    func otherOriginsGetNoToken(_ other: RequestOrigin?) async throws {
        let provider = try await provider(RotatingServer())
        let sent = try await provider.adapt(Request(origin: other))
        #expect(sent.request.headers.isEmpty)
        #expect(try await provider.retry(sent, after: ResponseMetadata(status: 401)) == nil)
    }

    @Test func originsAreComparedAsTheStandardSays() {
        #expect(RequestOrigin(scheme: "HTTPS", host: "API.example.com.") == origin)
        #expect(RequestOrigin(scheme: "https", host: "api.example.com", port: 443) == origin)
        #expect(RequestOrigin(scheme: "http", host: "[::1]", port: 80).isLoopback)
        #expect(RequestOrigin(scheme: "http", host: "127.8.9.1").keepsSecrets)
        for host in [
            "127.0.0.1.example.com", "localhost.example.com", "127.0.0", "127.0.0.256", "0177.0.0.1",
        ] {
            #expect(!RequestOrigin(scheme: "http", host: host).isLoopback, "\(host)")
        }
    }

    @Test func aRefusalIsAnsweredOnceWithANewToken() async throws {
        let server = RotatingServer()
        let provider = try await provider(server)
        let sent = Notes<String>()
        let status = try await provider.send(Request(origin: origin), facts: { ResponseMetadata(status: $0) })
        {
            request in
            sent.add(request.headers["Authorization"] ?? "")
            return 401
        }
        #expect(status == 401)
        #expect(sent.all == ["Bearer access-0", "Bearer access-1"])
        #expect(server.requests == 1)
    }

    @Test func aRefusalOfAnOldTokenForcesNoRefresh() async throws {
        let server = RotatingServer()
        let provider = try await provider(server)
        let slow = try await provider.adapt(Request(origin: origin))
        let quick = try await provider.adapt(Request(origin: origin))
        let first = try await provider.retry(quick, after: ResponseMetadata(status: 401))
        let second = try await provider.retry(slow, after: ResponseMetadata(status: 401))
        #expect(first?.request.headers == ["Authorization": "Bearer access-1"])
        #expect(second?.request.headers == ["Authorization": "Bearer access-1"])
        #expect(server.requests == 1)
    }

    @Test func aTokenThatAnotherProcessRenewedIsTakenAfterARefusal() async throws {
        let vault = try SharedVault()
        let server = RotatingServer()
        let manager = scene.manager(server, storage: try vault.storage())
        let other = scene.manager(server, storage: try vault.storage())
        try await manager.updateTokens(scene.tokens())
        let provider = TokenAuthProvider(manager: manager, allowedOrigins: [origin])
        let sent = try await provider.adapt(Request(origin: origin))
        try await other.refreshTokens()
        let again = try await provider.retry(sent, after: ResponseMetadata(status: 401))
        #expect(again?.request.headers == ["Authorization": "Bearer access-1"])
        #expect(server.requests == 1)
    }

    @Test func whatCannotBeSentAgainIsNot() async throws {
        let server = RotatingServer()
        let provider = try await provider(server)
        let sent = try await provider.adapt(Request(origin: origin, isReplayable: false))
        #expect(try await provider.retry(sent, after: ResponseMetadata(status: 401)) == nil)
        #expect(server.requests == 0)
    }

    @Test(arguments: [200, 400, 403, 500]) func otherAnswersAreAnswers(_ status: Int) async throws {
        let server = RotatingServer()
        let provider = try await provider(server)
        let sent = try await provider.adapt(Request(origin: origin))
        #expect(try await provider.retry(sent, after: ResponseMetadata(status: status)) == nil)
        #expect(server.requests == 0)
    }

    @Test func theTokenOfTheNextUserIsNotPutIntoTheLastOnesRequest() async throws {
        let provider = try await provider(RotatingServer())
        let sent = try await provider.adapt(Request(origin: origin))
        try await provider.manager.updateTokens(TokenInfo(accessToken: "next-user"))
        await #expect(throws: TokenError.sessionChanged) {
            try await provider.retry(sent, after: ResponseMetadata(status: 401))
        }
    }

    @Test func theEndOfTheSessionIsTold() async throws {
        let told = Notes<TokenError>()
        let server = RotatingServer(answers: [.failure(RefreshFailure(.invalidGrant))])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens())
        let provider = TokenAuthProvider(manager: manager, allowedOrigins: [origin]) { told.add($0) }
        let sent = try await provider.adapt(Request(origin: origin))
        await #expect(throws: TokenError.sessionExpired) {
            try await provider.retry(sent, after: ResponseMetadata(status: 401))
        }
        #expect(told.all == [.sessionExpired])
    }

    /// A server that refuses every token would otherwise cause a refresh for each request.
    @Test func aNewTokenThatIsRefusedIsNotReplacedAtOnce() async throws {
        let told = Notes<TokenError>()
        let server = RotatingServer()
        let scene = scene
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens())
        let provider = TokenAuthProvider(manager: manager, allowedOrigins: [origin]) { told.add($0) }
        let send = { () async throws in
            try await provider.send(Request(origin: origin), facts: { ResponseMetadata(status: $0) }) { _ in
                401
            }
        }
        for _ in 0..<20 { #expect(try await send() == 401) }
        #expect(server.requests == 1)
        #expect(told.all == Array(repeating: .tokenRefused, count: 19))
        scene.clock.advance(by: 31)
        #expect(try await send() == 401)
        #expect(server.requests == 2)
    }

    /// Processes that take one another's tokens cause no more requests than one.
    @Test func managersOfOneVaultDoNotReplaceInTurn() async throws {
        let vault = try SharedVault()
        let server = RotatingServer()
        let scene = scene
        let managers = [
            scene.manager(server, storage: try vault.storage()),
            scene.manager(server, storage: try vault.storage()),
        ]
        try await managers[0].updateTokens(scene.tokens())
        let providers = managers.map { TokenAuthProvider(manager: $0, allowedOrigins: [origin]) }
        for round in 0..<10 {
            let status = try await providers[round % 2].send(
                Request(origin: origin), facts: { ResponseMetadata(status: $0) }
            ) { _ in 401 }
            #expect(status == 401)
        }
        // Each manager may have replaced one token of the other.
        #expect(server.requests <= 2)
    }

    /// No refresh adds a scope (RFC 6750 section 3.1).
    @Test(arguments: [
        (401, #"Bearer realm="a, b", error="insufficient_scope", scope="write""#, true),
        (403, "bearer error=insufficient_scope", true),
        (401, #"Bearer error="invalid_token", error_description="not error=insufficient_scope""#, false),
        (401, #"Basic realm="error=insufficient_scope""#, false), (401, "", false),
        (401, "Bearer error = \"insufficient_scope\"", true), (401, "Bearer\terror=insufficient_scope", true),
        (401, #"Bearer realm="a\"b", error="insufficient_scope""#, true),
        (401, #"DPoP error="x", Bearer error="insufficient_scope""#, true), (401, "=,= =\"", false),
    ])
    func aMissingScopeIsReportedWithoutRefresh(_ status: Int, _ challenge: String, _ isOfScope: Bool)
        async throws
    {
        let told = Notes<TokenError>()
        let server = RotatingServer()
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens())
        let provider = TokenAuthProvider(manager: manager, allowedOrigins: [origin]) { told.add($0) }
        let sent = try await provider.adapt(Request(origin: origin, isReplayable: !isOfScope))
        let again = try await provider.retry(
            sent, after: ResponseMetadata(status: status, challenges: [challenge]))
        #expect((again == nil) == isOfScope)
        #expect(told.all == (isOfScope ? [.scopeInsufficient] : []))
        #expect(server.requests == (isOfScope ? 0 : 1))
    }

    @Test func aRequestThatWasSentElsewhereGetsNoNewToken() async throws {
        let server = RotatingServer()
        let provider = try await provider(server)
        var sent = try await provider.adapt(Request(origin: origin))
        sent.request.origin = .https("evil.example.com")
        #expect(try await provider.retry(sent, after: ResponseMetadata(status: 401)) == nil)
        #expect(server.requests == 0)
    }

    @Test func theTokenOfTheNextUserIsNotPutInWhileItIsBeingRenewed() async throws {
        let scene = scene
        let (gate, begun) = (Gate(), Gate())
        let server = RotatingServer { _ in
            begun.open()
            await gate.pass()
        }
        let manager = scene.manager(server) { $0.attempts = 1 }
        try await manager.updateTokens(TokenInfo(accessToken: "last-user", refreshToken: "last"))
        let provider = TokenAuthProvider(manager: manager, allowedOrigins: [origin])
        let sent = try await provider.adapt(Request(origin: origin))
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let next = Task { try await manager.validAccessToken() }
        await begun.pass()
        let retry = Task { try await provider.retry(sent, after: ResponseMetadata(status: 401)) }
        gate.open()
        #expect(try await next.value == "access-1")
        await #expect(throws: TokenError.sessionChanged) { try await retry.value }
    }
}
