#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// The device grant (RFC 8628) against a server with scripted answers, on a clock that does not wait.
@Suite(.tags(.provider), .from(.all)) struct DeviceTests {
    private static let codes = #"""
        {"device_code":"fake-device","user_code":"FAKE-CODE","expires_in":600,"interval":5,
         "verification_uri":"https://a.example/device","verification_uri_complete":"https://a.example/device?c=1"}
        """#

    /// A server that answers the requests for tokens one after the other, the last answer for ever.
    private func server(codes: String = codes, _ answers: [ScriptedServer.Reply]) async throws
        -> ScriptedServer
    {
        let requests = Counter()
        return try await ScriptedServer { asked in
            asked.path == "/device" ? .json(codes) : answers[min(requests.next(), answers.count) - 1]
        }
    }

    private static func refusal(_ code: String) -> ScriptedServer.Reply {
        .json(#"{"error":"\#(code)"}"#, status: 400)
    }

    /// GitHub's answers: every error has status 200.
    @Test func errorsWithStatus200AreWaitedFor() async throws {
        let answers = ["authorization_pending", "slow_down"].map {
            ScriptedServer.Reply.json(#"{"error":"\#($0)","error_description":"d","interval":10}"#)
        }
        let server = try await server(answers + [.json(tokenAnswer)])
        let clock = TestClock()
        let client = try client(server, clock: clock)
        let result = try await client.signIn(with: try await client.authorizeDevice(scopes: ["read"]))
        #expect(result.tokens.accessToken == "fake-access")
        #expect(clock.slept == [5, 5, 10])
    }

    @Test(arguments: [
        ("access_denied", OAuthError.accessDenied), ("expired_token", .timedOut),
        ("incorrect_device_code", .requestFailed(RefreshFailure(.refused("incorrect_device_code")))),
    ])
    func errorsWithStatus200EndTheWait(_ code: String, _ error: OAuthError) async throws {
        let client = try client(try await server([.json(#"{"error":"\#(code)"}"#)]))
        let device = try await client.authorizeDevice(scopes: [])
        #expect(
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) } == error)
    }

    /// A sign-in revokes a refresh token that arrives beside an error.
    @Test func aTokenBesideAnErrorIsRevoked() async throws {
        let server = try await server([.json(#"{"error":"access_denied","refresh_token":"fake"}"#)])
        let client = try client(server)
        let device = try await client.authorizeDevice(scopes: [])
        #expect(
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) }
                == .tokensNotRevoked(.malformedResponse("the document")))
        let revocation = try #require(server.asked.last)
        #expect(revocation.path == "/revoke" && revocation.form["token"] == "fake")
    }

    @Test func aRefusedDeviceRequestNamesTheCode() async throws {
        let client = try client(try await server(codes: #"{"error":"device_flow_disabled"}"#, []))
        #expect(
            await failure { () async throws(OAuthError) in try await client.authorizeDevice(scopes: []) }
                == .requestFailed(RefreshFailure(.refused("device_flow_disabled"))))
    }

    @Test func aDeviceWaitsAsItIsTold() async throws {
        let server = try await server([
            Self.refusal("authorization_pending"), Self.refusal("slow_down"),
            Self.refusal("authorization_pending"), Self.refusal("slow_down"), .json(tokenAnswer),
        ])
        let clock = TestClock()
        let client = try client(server, clock: clock)
        let device = try await client.authorizeDevice(scopes: ["read"])
        #expect(device.userCode == "FAKE-CODE")
        #expect(device.verificationURI == "https://a.example/device")
        #expect(device.verificationURIComplete == "https://a.example/device?c=1")
        #expect(device.expiry == clock.now.addingTimeInterval(600))
        let result = try await client.signIn(with: device)
        #expect(result.tokens.accessToken == "fake-access")
        #expect(result.tokens.scope == "read")
        #expect(clock.slept == [5, 5, 10, 10, 15])
        #expect(server.asked[0].form == ["scope": "read", "client_id": "fake-client"])
        #expect(
            server.asked[1].form == [
                "grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "fake-device",
                "client_id": "fake-client",
            ])
    }

    @Test(arguments: [
        ("access_denied", OAuthError.accessDenied), ("expired_token", .timedOut),
        ("invalid_grant", .requestFailed(RefreshFailure(.refused("invalid_grant")))),
        ("unauthorized_client", .requestFailed(RefreshFailure(.refused("unauthorized_client")))),
    ])
    func refusalsEndIt(_ code: String, _ error: OAuthError) async throws {
        let server = try await server([Self.refusal("authorization_pending"), Self.refusal(code)])
        let client = try client(server)
        let device = try await client.authorizeDevice(scopes: [])
        #expect(
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) } == error)
        #expect(server.asked.count == 3)
    }

    @Test func itEndsWithTheCode() async throws {
        let server = try await server([Self.refusal("authorization_pending")])
        let clock = TestClock()
        let client = try client(server, clock: clock)
        let device = try await client.authorizeDevice(scopes: [])
        #expect(
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) }
                == .timedOut)
        #expect(clock.now < device.expiry)
        #expect(clock.slept.count == 119)
    }

    /// RFC 8628 section 3.5: exponential back-off after a connection that failed.
    @Test func brokenConnectionsAreTriedAgainSlower() async throws {
        let server = try await server([.dropped, .init(status: 502), .json(tokenAnswer)])
        let clock = TestClock()
        let client = try client(server, clock: clock)
        let device = try await client.authorizeDevice(scopes: [])
        _ = try await client.signIn(with: device)
        #expect(clock.slept == [5, 10, 20])
    }

    /// The lost answer may have been the one with the tokens. A code that is over afterwards does not prove
    /// that the user did not sign in. A later answer that tells the client to wait proves it.
    @Test(arguments: [nil, 500, 503])
    func anAnswerThatWasLostMayHaveBroughtTokens(_ status: Int?) async throws {
        let lost = status.map { ScriptedServer.Reply(status: $0) } ?? .dropped
        let over = RefreshFailure(.refused("device_not_found"))
        var left = over
        left.mayLeaveSession = true
        var unknown = RefreshFailure(status.map { .serverError($0) } ?? .interrupted)
        unknown.mayLeaveSession = true
        for (replies, reason) in [
            ([lost, Self.refusal("device_not_found")], OAuthError.requestFailed(left)),
            ([lost, Self.refusal("expired_token")], .requestFailed(unknown)),
            ([lost], .requestFailed(unknown)),
            (
                [lost, Self.refusal("authorization_pending"), Self.refusal("device_not_found")],
                .requestFailed(over)
            ),
        ] {
            let server = try await server(replies)
            let client = try client(server)
            let device = try await client.authorizeDevice(scopes: [])
            let ending = await failure { () async throws(OAuthError) in try await client.signIn(with: device)
            }
            #expect(ending == reason)
        }
    }

    /// OpenID Connect has no such grant: some providers give an ID token, others the access token alone.
    @Test func anIDTokenNeedNotCome() async throws {
        let server = try await server([.json(tokenAnswer)])
        let client = try client(server)
        let device = try await client.authorizeDevice(scopes: ["openid"])
        let result = try await client.signIn(with: device)
        #expect(result.claims == nil && result.tokens.accessToken == "fake-access")
    }

    @Test func aCancelledDeviceStops() async throws {
        let server = try await server([Self.refusal("authorization_pending")])
        let client = try client(server)
        let device = try await client.authorizeDevice(scopes: [])
        let waiting = Task {
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) }
        }
        waiting.cancel()
        let ending = await waiting.value
        #expect(ending == .cancelled)
    }

    @Test(arguments: [
        (#""user_code":"A\u001b[2J","verification_uri":"https://a.example""#, "the user's code"),
        (#""user_code":"","verification_uri":"https://a.example""#, "the user's code"),
        (#""user_code":"A","verification_uri":"http://a.example""#, "the verification address"),
        (#""user_code":"A","verification_uri":"https://a.example/\u001b[2J""#, "the verification address"),
        (#""user_code":"A""#, "the verification address"),
    ])
    func whatIsNotFitForATerminalIsRefused(_ members: String, _ what: String) async throws {
        let server = try await server(codes: #"{"device_code":"d","expires_in":60,\#(members)}"#, [.dropped])
        let client = try client(server)
        #expect(
            await failure { () async throws(OAuthError) in try await client.authorizeDevice(scopes: []) }
                == .malformedResponse(what))
    }

    @Test func withoutAnIntervalItIsFiveSeconds() async throws {
        let server = try await server(
            codes:
                #"{"device_code":"d","user_code":"u","expires_in":"60","verification_url":"https://a.example"}"#,
            [.dropped])
        #expect(try await client(server).authorizeDevice(scopes: []).interval == .seconds(5))
    }
}
#endif
