#if OAuth
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

@testable import TokenVaultOAuth

/// A provider's error text, for callers that ask for it.
@Suite(.tags(.provider), .from(.all)) struct ErrorTextTests {
    private final class Texts: Sendable {
        private let inside = Mutex<[String]>([])
        var all: [String] { inside.withLock { $0 } }
        func add(_ text: String) { inside.withLock { $0.append(text) } }
    }

    private func errorTexts(
        _ reply: ScriptedServer.Reply, _ authentication: ClientAuthentication = .none
    ) async throws -> [String] {
        let server = try await ScriptedServer(always: reply)
        let texts = Texts()
        var client = try client(server, authentication: authentication)
        client.onErrorText = { texts.add($0) }
        _ = await refreshRequest(client)
        return texts.all
    }

    @Test(arguments: [
        (#"{"error":"invalid_grant"}"#, ["invalid_grant"]),
        (
            #"{"error":"invalid_grant","error_description":"The token is over."}"#,
            ["invalid_grant: The token is over."]
        ),
        (#"{"error":{"code":"E17","message":"No such app"}}"#, ["E17: No such app"]),
        (#"{"message":"Bad credentials","code":7}"#, ["Bad credentials"]),
        // Control characters and non-ASCII letters become `?`.
        (#"{"error":"a","error_description":"\u001b[2J\n\u00e4\u202e"}"#, ["a: ?[2J???"]),
        (#"{"error":7}"#, []), ("<html>", []), ("", []), ("{}", []), (#"{"error":""}"#, []),
    ])
    func errorsAreShown(_ body: String, _ texts: [String]) async throws {
        #expect(try await errorTexts(.json(body, status: 400)) == texts)
    }

    @Test func aLongTextIsCut() async throws {
        let text = String(repeating: "x", count: 1_000)
        let shown = try #require(try await errorTexts(.json(#"{"error":"\#(text)"}"#, status: 400)).first)
        #expect(shown == String(repeating: "x", count: 300) + "...")
    }

    /// A repeated secret is neither shown nor logged.
    @Test func whatWasSentIsNotShown() async throws {
        let secret = Secret(utf8: "fake-secret")
        for authentication in [ClientAuthentication.clientSecretBasic(secret), .clientSecretPost(secret)] {
            for sent in ["fake-old", "fake-secret"] {
                let body = #"{"error":"invalid_grant","error_description":"got \#(sent)!"}"#
                #expect(
                    try await errorTexts(.json(body, status: 400), authentication)
                        == ["(the text repeats a secret)"])
            }
        }
    }

    /// A secret in another form, or a part of it.
    @Test(arguments: [
        "fake%20secret%25", "fake+secret%25", "fake secre", "ake secret%\u{301}", "%66ake%20secret",
        "100% fake%20secret%25",
        "Basic ZmFrZS1jbGllbnQ6ZmFrZStzZWNyZXQlMjU=",
    ])
    func noFormOfASecretIsShown(_ sent: String) async throws {
        let body = #"{"error":"invalid_client","error_description":"got \#(sent)!"}"#
        let authentication = ClientAuthentication.clientSecretBasic(Secret(utf8: "fake secret%"))
        #expect(
            try await errorTexts(.json(body, status: 400), authentication) == ["(the text repeats a secret)"])
    }

    /// Values that the provider may name are no secrets.
    @Test func anErrorAboutTheRequestIsShown() async throws {
        for text in [
            "the code flow is not enabled", "S256 is missing", "login_required",
            "urn:ietf:params:oauth:token-type:access_token is not supported", "http://127.0.0.1:1/cb",
        ] {
            let body = #"{"error":"a","error_description":"\#(text)"}"#
            let server = try await ScriptedServer(always: .json(body, status: 400))
            let texts = Texts()
            var client = try OAuthClient(
                provider: try ProviderMetadata(
                    issuer: server.origin, authorizationEndpoint: "\(server.origin)/authorize",
                    tokenEndpoint: "\(server.origin)/token",
                    pushedAuthorizationRequestEndpoint: "\(server.origin)/par"),
                clientID: "fake-client", transport: OAuthTransport())
            client.onErrorText = { texts.add($0) }
            let request = try client.authorizationRequest(
                redirectURI: "http://127.0.0.1:1/cb", scopes: [], parameters: ["prompt": "login"])
            _ = try await client.pushed(request)
            _ = await failure { () async throws(OAuthError) in
                try await client.exchange(Secret(utf8: "fake-token"))
            }
            #expect(texts.all == ["a: \(text)", "a: \(text)"])
        }
    }

    /// The check takes no longer for a text of which most is not shown.
    @Test func aTextOfTheLongestBodyIsRead() async throws {
        let text = String(repeating: "x", count: 900_000) + "fake-old"
        let shown = try await errorTexts(.json(#"{"error":"\#(text)"}"#, status: 400))
        #expect(shown == [String(repeating: "x", count: 300) + "..."])
    }

    @Test func aSuccessIsNotExplained() async throws {
        #expect(try await errorTexts(.json(tokenAnswer)).isEmpty)
    }

    /// The answer to the browser, and the answers to a device that still waits.
    @Test func aSignInIsExplainedAtItsEnd() async throws {
        let (texts, polls) = (Texts(), Texts())
        let server = try await ScriptedServer { asked in
            if asked.path == "/token" { polls.add("poll") }
            return asked.path == "/device"
                ? .json(
                    #"{"device_code":"fake-device","user_code":"A","expires_in":600,"verification_uri":"https://a.example/"}"#
                )
                : .json(
                    polls.all.count == 3
                        ? #"{"error":"expired_token","error_description":"Too late."}"#
                        : #"{"error":"\#(polls.all.count == 1 ? "authorization_pending" : "slow_down")"}"#,
                    status: 400)
        }
        var client = try client(server)
        client.onErrorText = { texts.add($0) }
        let request = try client.authorizationRequest(redirectURI: "http://127.0.0.1:1/cb", scopes: [])
        let state = try #require(request.state.unprotectedText())
        let callback = "?state=\(state)&error=server_error&error_description=Come+back%21"
        #expect(
            await failure { () async throws(OAuthError) in
                try await client.signIn(request, callback: callback)
            } == .authorizationRefused("server_error"))
        #expect(texts.all == ["server_error: Come back!"])
        let device = try await client.authorizeDevice(scopes: [])
        #expect(
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) }
                == .timedOut)
        #expect(texts.all == ["server_error: Come back!", "expired_token: Too late."])
    }
}
#endif
