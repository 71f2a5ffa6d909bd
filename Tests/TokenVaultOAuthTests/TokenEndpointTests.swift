#if OAuth
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestLanes
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// What each answer of a token endpoint means for a refresh, and what is sent to it.
@Suite(.tags(.provider), .from(.all)) struct TokenEndpointTests {
    private func outcome(
        _ reply: ScriptedServer.Reply, clock: TestClock = TestClock()
    ) async throws -> Result<TokenRefreshResponse, RefreshFailure> {
        let server = try await ScriptedServer(always: reply)
        return await refreshRequest(try client(server, clock: clock))
    }

    @Test func aRefreshSendsWhatItHasTo() async throws {
        let server = try await ScriptedServer(
            always: .json(tokenAnswer, headers: [("Date", "Sun, 06 Nov 1994 08:49:37 GMT")]))
        let response = try await refreshRequest(try client(server)).get()
        #expect(response.accessToken == "fake-access")
        #expect(response.refreshToken == "fake-refresh")
        #expect(response.expiresIn == 60)
        #expect(response.serverDate?.timeIntervalSince1970 == 784_111_777)
        let asked = try #require(server.asked.first)
        #expect(asked.method == "POST")
        #expect(asked.target == "/token")
        #expect(
            asked.form == [
                "grant_type": "refresh_token", "refresh_token": "fake-old", "client_id": "fake-client",
            ])
        #expect(asked.headers["Authorization"].isEmpty)
        #expect(asked.headers["Accept"] == ["application/json"])
    }

    @Test func aClientShowsItsSecretInOnePlace() async throws {
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let secret = Secret(utf8: "fake-secret")
        _ = try await refreshRequest(try client(server, authentication: .clientSecretBasic(secret))).get()
        _ = try await refreshRequest(try client(server, authentication: .clientSecretPost(secret))).get()
        #expect(server.asked[0].headers["Authorization"].count == 1)
        #expect(server.asked[0].form["client_secret"] == nil)
        #expect(server.asked[1].headers["Authorization"].isEmpty)
        #expect(server.asked[1].form["client_secret"] == "fake-secret")
    }

    @Test(arguments: [
        (400, #"{"error":"invalid_grant"}"#, RefreshFailure.Kind.invalidGrant),
        (401, #"{"error":"invalid_grant"}"#, .invalidGrant),
        (401, #"{"error":"invalid_client"}"#, .refused("invalid_client")),
        (400, #"{"error":"fake <text>"}"#, .refused("unknown_error")),
        (400, "<html>", .unusable(400)), (403, "", .unusable(403)), (404, "{}", .unusable(404)),
        (429, "", .throttled), (429, #"{"error":"invalid_grant"}"#, .throttled),
        (503, "", .serverError(503)), (500, #"{"error":"invalid_grant"}"#, .serverError(500)),
        (302, "", .unusable(302)), (307, "", .unusable(307)), (204, "", .unusable(204)),
        (200, "{}", .unusable(200)),
        (200, #"{"access_token":"a","token_type":"mac"}"#, .unusable(200)),
        (200, #"{"access_token":"fake"#, .unusable(200)),
        (200, #"{"access_token":"a","refresh_token":7}"#, .unusable(200)),
        (200, #"{"access_token":"\#(String(repeating: "a", count: 128 << 10 + 1))"}"#, .unusable(200)),
        (201, String(repeating: " ", count: 1 << 20 + 1), .unusable(201)),
    ])
    func answersMean(_ status: Int, _ body: String, _ kind: RefreshFailure.Kind) async throws {
        #expect(try await outcome(.json(body, status: status)).failure?.kind == kind)
    }

    /// GitHub sends errors with status 200, and has other codes for an expired refresh token.
    @Test(arguments: [
        (200, #"{"error":"invalid_grant"}"#, RefreshFailure.Kind.invalidGrant),
        (200, #"{"error":"bad_refresh_token","error_description":"d","error_uri":"u"}"#, .invalidGrant),
        (400, #"{"error":"invalid_refresh_token"}"#, .invalidGrant),
        (200, #"{"error":"incorrect_client_credentials"}"#, .refused("incorrect_client_credentials")),
        (201, #"{"error":"access_denied","access_token":null}"#, .refused("access_denied")),
        (200, #"{"access_token":"","error":"access_denied"}"#, .refused("access_denied")),
        (302, #"{"error":"access_denied"}"#, .refused("access_denied")),
        (200, #"{"error":{"message":"invalid_grant"}}"#, .unusable(200)),
        (400, #"{"error":{"code":"invalid_grant"}}"#, .unusable(400)), (400, #"{"error":7}"#, .unusable(400)),
        (400, #"["invalid_grant"]"#, .unusable(400)), (400, #"{"errors":["invalid_grant"]}"#, .unusable(400)),
    ])
    func anErrorCountsAtAnyStatus(_ status: Int, _ body: String, _ kind: RefreshFailure.Kind) async throws {
        #expect(try await outcome(.json(body, status: status)).failure?.kind == kind)
    }

    /// A token beside an error may be valid, so the outcome of the refresh is unknown.
    @Test(arguments: [
        #"{"error":"access_denied","refresh_token":"fake"}"#, #"{"error":"invalid_grant","access_token":7}"#,
        #"{"error":""}"#, #"{"error":"invalid_grant","access_token":"","refresh_token":["fake"]}"#,
    ])
    func anErrorBesideATokenLeavesTheOutcomeUnknown(_ body: String) async throws {
        #expect(try await outcome(.json(body)).failure?.kind == .unusable(200))
    }

    /// Some providers send an empty error with every success.
    @Test func tokensBesideAnErrorAreTokens() async throws {
        for code in [#""""#, #""none""#, "null"] {
            let answer = #"{"error":\#(code),"access_token":"fake-access","token_type":"bearer"}"#
            #expect(try await outcome(.json(answer)).get().accessToken == "fake-access")
        }
    }

    /// AsyncHTTPClient would end the process.
    @Test(arguments: ["000", "001", "042", "099", "101"], ["", "later"])
    func aStatusThatIsNoneIsAnAnswerOfNoUse(_ status: String, _ body: String) async throws {
        let server = try await RawServer(
            always: "HTTP/1.1 \(status) X\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let client = try OAuthClient(
            provider: try metadata(server.origin), clientID: "a", transport: OAuthTransport())
        #expect(await refreshRequest(client).failure?.kind == .unusable(Int(status) ?? -1))
    }

    /// The refresh token was rotated: no optional member, nor the status of the success, is worth more than the one that came.
    @Test(
        arguments: [
            #""scope":["a","b"]"#, #""scope":"a\"b""#, #""scope":7"#, #""id_token":"""#, #""id_token":7"#,
            #""id_token":"ü""#, #""expires_in":"""#, #""expires_in":-1"#, #""expires_in":0"#,
            #""expires_in":"soon""#, #""expires_in":{}"#, #""refresh_expires_in":-1"#,
            #""refresh_expires_in":0"#, #""token_type":"""#, #""token_type":7"#, #""token_type":null"#,
            #""more":[{}]"#,
        ], [200, 201])
    func whatIsOptionalSpoilsNothing(_ member: String, _ status: Int) async throws {
        let response = try await outcome(
            .json(#"{"access_token":"a","refresh_token":"r",\#(member)}"#, status: status)
        ).get()
        #expect(response.accessToken == "a" && response.refreshToken == "r")
        #expect(response.scope == (member.hasSuffix("]") && member.contains("scope") ? "a b" : nil))
        #expect(response.idToken == nil && response.expiresIn == nil)
        #expect(response.refreshTokenExpiresIn == nil && response.tokenType == nil)
    }

    /// What a strict server must not be sent: the token that it has taken, by the same call.
    @Test func aSuccessThatIsOfNoUseIsNotAskedForAgain() async throws {
        let server = try await ScriptedServer(always: .json("{}"))
        let manager = try client(server).tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a")
        try await manager.updateTokens(
            TokenInfo(
                accessToken: "old", refreshToken: "r", accessTokenExpiry: Date(timeIntervalSince1970: 1)))
        await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        #expect(server.asked.count == 1)
    }

    /// Keycloak says so of a refresh token that does not end.
    @Test func aLifetimeOfNoneIsNotTold() async throws {
        let server = try await ScriptedServer(
            always: .json(
                #"{"access_token":"a","token_type":"Bearer","expires_in":0,"refresh_token":"r","refresh_expires_in":0}"#
            ))
        let client = try client(server, authentication: .clientSecretPost(Secret(utf8: "fake-secret")))
        let tokens = try await client.clientCredentials().tokens
        #expect(tokens.accessTokenExpiry == nil && tokens.refreshTokenExpiry == nil)
    }

    /// The whole exchange has one end: a body that does not come is no reason to wait for it.
    @Test func aBodyThatDoesNotEndIsNotWaitedFor() async throws {
        let server = try await ScriptedServer(always: ScriptedServer.Reply(stall: .inBody))
        var configuration = OAuthTransport.Configuration()
        configuration.requestTimeout = .milliseconds(500)
        let client = try OAuthClient(
            provider: try metadata(server.origin), clientID: "a",
            transport: OAuthTransport(configuration: configuration))
        #expect(await refreshRequest(client).failure?.kind == .timedOut)
    }

    @Test(arguments: [429, 503])
    func aServerSaysWhenToComeBack(_ status: Int) async throws {
        let clock = TestClock()
        let seconds = try await outcome(
            .init(status: status, headers: [("Retry-After", "120")]), clock: clock
        ).failure
        #expect(seconds?.kind == .throttled)
        #expect(seconds?.retryAfter == clock.now.addingTimeInterval(120))
        // The server's clock is in 1994, and the server wants a pause of 30 s from then.
        let date = try await outcome(
            .init(
                status: status,
                headers: [
                    ("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT"),
                    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ]), clock: clock
        ).failure
        #expect(date?.retryAfter == clock.now.addingTimeInterval(30))
        #expect(date?.serverDate?.timeIntervalSince1970 == 784_111_777)
    }

    @Test func aConnectionThatBreaksLeavesTheOutcomeUnknown() async throws {
        #expect(try await outcome(.dropped).failure?.kind == .interrupted)
    }

    /// The new tokens are lost with it: a server that allows another try gives them, and at another one the session is over.
    @Test func anAnswerThatIsCutOffIsAskedForOnceMore() async throws {
        let cut = ScriptedServer.Reply(body: #"{"access_token":"a","token_type":"bearer"#, isCut: true)
        #expect(try await outcome(cut).failure?.kind == .interrupted)
        let isFirst = Mutex(true)
        let server = try await ScriptedServer { _ in
            isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? cut : .json(tokenAnswer)
            }
        }
        var configuration = TokenManager.Configuration()
        configuration.sleep = { _ in }
        configuration.backOff = RefreshBackOff(jitter: { -1 })
        let manager = try client(server).tokenManager(
            storage: InMemoryVault().storage(service: "a"), account: "a", configuration: configuration)
        try await manager.updateTokens(TokenInfo(accessToken: "old", refreshToken: "fake-old"))
        #expect(try await manager.refreshTokens().accessToken == "fake-access")
        #expect(server.asked.map { $0.form["refresh_token"] } == ["fake-old", "fake-old"])
    }

    @Test func aRefusedConnectionIsNotSent() async throws {
        let port = try UnansweredPort()
        for host in ["127.0.0.1", "localhost"] {
            let client = try OAuthClient(
                provider: try metadata("http://\(host):\(port.number)"), clientID: "a",
                transport: OAuthTransport())
            #expect(await refreshRequest(client).failure?.kind == .notSent)
        }
    }

    /// A name under `.invalid` is never found (RFC 6761 section 6.4).
    @Test func aNameThatIsNotFoundIsNotSent() async throws {
        let provider = try ProviderMetadata(
            issuer: "https://a.invalid", tokenEndpoint: "https://a.invalid/token")
        let client = try OAuthClient(provider: provider, clientID: "a", transport: OAuthTransport())
        #expect(await refreshRequest(client).failure?.kind == .notSent)
    }

    @Test func aServerThatDoesNotEncryptIsNotSent() async throws {
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let origin = "https://127.0.0.1:\(server.port)"
        let client = try OAuthClient(
            provider: try metadata(origin), clientID: "a", transport: OAuthTransport())
        #expect(await refreshRequest(client).failure?.kind == .notSent)
        #expect(server.asked.isEmpty)
    }

    @Test func noConnectionIsUsedTwice() async throws {
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let client = try client(server)
        for _ in 0..<3 { _ = try await refreshRequest(client).get() }
        #expect(server.connections == 3)
    }

    @Test func clientCredentialsAreSent() async throws {
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let clock = TestClock()
        let client = try client(
            server, authentication: .clientSecretPost(Secret(utf8: "fake-secret")), clock: clock)
        let result = try await client.clientCredentials(scopes: ["a", "b"])
        #expect(result.tokens.accessToken == "fake-access")
        #expect(result.tokens.accessTokenExpiry == clock.now.addingTimeInterval(60))
        #expect(server.asked[0].form["grant_type"] == "client_credentials")
        #expect(server.asked[0].form["scope"] == "a b")
        let open = try self.client(server)
        #expect(
            await failure { () async throws(OAuthError) in try await open.clientCredentials() }
                == .unsupported("client credentials without a secret or key"))
    }

    private func client(
        _ server: ScriptedServer, authentication: ClientAuthentication = .none,
        clock: TestClock = TestClock(), revokes: Bool = true
    ) throws -> OAuthClient {
        try TokenVaultOAuthTests.client(
            server, authentication: authentication, clock: clock, revokes: revokes)
    }

    @Test func bothTokensAreRevoked() async throws {
        let server = try await ScriptedServer(always: .init())
        let revoke = try #require(try client(server).revokeRequestProvider)
        try await revoke(TokenInfo(accessToken: "fake-access", refreshToken: "fake-refresh"))
        #expect(server.asked.map(\.target) == ["/revoke", "/revoke"])
        #expect(server.asked.map { $0.form["token"] } == ["fake-refresh", "fake-access"])
        #expect(server.asked.map { $0.form["token_type_hint"] } == ["refresh_token", "access_token"])
    }

    @Test(arguments: [(200, true), (202, true), (204, true), (302, false), (403, false)])
    func anySuccessRevokes(_ status: Int, _ isRevoked: Bool) async throws {
        let server = try await ScriptedServer(always: .init(status: status))
        let revoke = try #require(try client(server).revokeRequestProvider)
        do {
            try await revoke(TokenInfo(accessToken: "fake-access"))
            #expect(isRevoked)
        } catch {
            #expect(!isRevoked && error as? RefreshFailure == RefreshFailure(.unusable(status)))
        }
    }

    /// No session would hold these tokens.
    @Test func theTokensOfASignInThatIsOfNoUseAreRevoked() async throws {
        let server = try await ScriptedServer(
            always: .json(#"{"access_token":"a","refresh_token":"r","token_type":"mac"}"#))
        let client = try client(server, authentication: .clientSecretPost(Secret(utf8: "fake-secret")))
        #expect(
            await failure { () async throws(OAuthError) in try await client.clientCredentials() }
                == .unsupported("bearer tokens"))
        #expect(server.asked.map(\.target) == ["/token", "/revoke", "/revoke"])
        #expect(server.asked.dropFirst().map { $0.form["token"] } == ["r", "a"])
    }

    /// What could not be taken back is said to be there, also where there is no way to.
    @Test(arguments: [false, true])
    func tokensOfNoUseThatCannotBeRevokedAreTold(_ revokes: Bool) async throws {
        let server = try await ScriptedServer { asked in
            guard asked.path == "/token" else { return .init(status: 503) }
            return .json(#"{"access_token":"a","refresh_token":"r","token_type":"mac"}"#)
        }
        let client = try client(
            server, authentication: .clientSecretPost(Secret(utf8: "fake-secret")), revokes: revokes)
        #expect(
            await failure { () async throws(OAuthError) in try await client.clientCredentials() }
                == .tokensNotRevoked(.unsupported("bearer tokens")))
    }

    @Test func aFailedRevocationIsTold() async throws {
        let server = try await ScriptedServer { asked in
            .init(status: asked.form["token"] == "fake-refresh" ? 503 : 200)
        }
        let revoke = try #require(try client(server).revokeRequestProvider)
        await #expect(throws: RefreshFailure(.serverError(503))) {
            try await revoke(TokenInfo(accessToken: "fake-access", refreshToken: "fake-refresh"))
        }
        // The access token was revoked anyway.
        #expect(server.asked.count == 2)
    }

    @Test func aProviderThatCannotRevokeAccessTokensIsNoFailure() async throws {
        let server = try await ScriptedServer { asked in
            asked.form["token_type_hint"] == "access_token"
                ? .json(#"{"error":"unsupported_token_type"}"#, status: 400) : .init()
        }
        let revoke = try #require(try client(server).revokeRequestProvider)
        try await revoke(TokenInfo(accessToken: "fake-access", refreshToken: "fake-refresh"))
        let none = try OAuthClient(
            provider: try ProviderMetadata(issuer: server.origin, tokenEndpoint: "\(server.origin)/token"),
            clientID: "a", transport: OAuthTransport())
        #expect(none.revokeRequestProvider == nil)
    }

    /// Refusals of a sign-in: the provider's code, or that it was none of the provider's words.
    @Test(arguments: [
        (
            400, #"{"error":"invalid_scope"}"#,
            OAuthError.requestFailed(RefreshFailure(.refused("invalid_scope")))
        ),
        (400, #"{"error":"invalid_grant"}"#, .requestFailed(RefreshFailure(.refused("invalid_grant")))),
        (403, "<html>", .malformedResponse("the status")), (302, "", .malformedResponse("the status")),
        (500, "", .requestFailed(RefreshFailure(.serverError(500)).ofGrant)),
        (200, #"{"access_token":"a","token_type":"mac"}"#, .unsupported("bearer tokens")),
        // The server may have issued a token.
        (200, "", .tokensNotRevoked(.malformedResponse("the document"))),
        (
            200, #"{"access_token":7,"token_type":"Bearer"}"#,
            .tokensNotRevoked(.malformedResponse("the document"))
        ),
        (
            200, #"{"access_token":"a b","token_type":"Bearer"}"#,
            .tokensNotRevoked(.malformedResponse("the access token"))
        ),
        (
            200, #"{"access_token":"a","token_type":"mac","refresh_token":7}"#,
            .tokensNotRevoked(.unsupported("bearer tokens"))
        ),
    ])
    func refusalsOfASignInMean(_ status: Int, _ body: String, _ error: OAuthError) async throws {
        let server = try await ScriptedServer(always: .json(body, status: status))
        let client = try client(server, authentication: .clientSecretPost(Secret(utf8: "fake-secret")))
        #expect(
            await failure { () async throws(OAuthError) in try await client.clientCredentials() } == error)
    }
}
#endif
