#if OAuth
import AsyncHTTPClient
import Foundation
import Glibc
import Logging
import NIOCore
import NIOHTTP1
import TestLanes
import Testing
import TokenVault
import TokenVaultCrypto
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// No token, code, verifier, nonce, state or client's secret is in anything that is logged, thrown, printed or left by a
/// crash.
@Suite(.tags(.provider), .from(.all), .serialized) struct SilenceTests {
    private let search = SecretSearch()
    private let listener = Listener()
    private let log = LogCapture.shared

    private func expectSilence() {
        for (place, text) in [("printed", listener.text), ("logged", log.text)] {
            for (secret, around) in search.found(in: text) { Issue.record("\(place): \(secret): \(around)") }
        }
    }

    /// The search finds what it is there for, and the ears hear.
    @Test func aSecretThatGetsOutIsFound() {
        struct Chatty: Error { let token: String }
        let secret = search.make()
        search.add("abcdefghijkl.mnopqrstuvwx.yz0123456789")
        for text in [
            secret, "x\(secret.prefix(12))…", FormEncoding.encode(secret),
            "\(Data(secret.utf8).base64EncodedString())",
            "Basic \(Data("a:\(secret)".utf8).base64EncodedString())",
            "Basic \(Data("ab:\(secret)".utf8).base64EncodedString())",
            Base64.urlText(Array("abc:\(secret)".utf8)),
            secret.utf8.map { String(format: "%02x", $0) }.joined(separator: " "),
            "\(Array(secret.utf8))", "{\"a\":\"\(secret.replacing("/", with: "\\/"))\"}",
        ] { #expect(Array(search.found(in: "before \(text) after").keys) == [secret], "\(text)") }
        #expect(!search.found(in: "mnopqrstuvwx").isEmpty)
        #expect(search.found(in: "nothing of the kind").isEmpty)
        for value in [Chatty(token: secret), [Chatty(token: secret)], ["a": (secret, 1)]] as [Any] {
            let listener = Listener()
            listener.hear(value)
            #expect(Array(search.found(in: listener.text).keys) == [secret])
        }
        Logger(label: "test").trace("a line", metadata: ["token": "\(secret)"])
        #expect(Array(search.found(in: log.text).keys) == [secret])
    }

    /// With a real provider: signing in, renewing, a 401, revoking, and codes and tokens that are not accepted any more.
    @Test(.timeLimit(.minutes(20))) func aWholeSessionSaysNothing() async throws {
        let provider = try RunningProvider()
        let client = try await provider.client()
        let redirect = try await LoopbackRedirect.listen(for: client.provider)
        let request = try client.authorizationRequest(
            redirectURI: redirect.redirectURI, state: redirect.state, scopes: ["openid", "read"],
            parameters: [:])
        async let page = provider.have("browse", ["url": request.url])
        let answer = try await redirect.answer(within: .seconds(3_600))
        _ = try await page
        search.add(request.state.unprotectedText())
        search.add(request.nonce?.unprotectedText())
        search.add(request.proofKey.verifier.unprotectedText())
        search.add(try answer.code())
        let signedIn = try await client.exchange(answer, of: request)
        add(signedIn.tokens)
        for value in [redirect, request, answer, signedIn, signedIn.claims as Any] as [Any] {
            listener.hear(value)
        }
        var proxied = OAuthTransport.Configuration()
        proxied.proxy = .server(
            host: "127.0.0.1", port: 1, authorization: .basic(username: "a", password: search.make()))
        listener.hear(proxied)
        // The code was used before.
        await listener.attempt { try await client.exchange(answer, of: request) }

        let manager = client.tokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a")
        try await manager.updateTokens(signedIn.tokens)
        let origin = RequestOrigin(scheme: "http", host: "127.0.0.1", port: provider.facts["port"].number)
        let authorizer = TokenAuthProvider(manager: manager, allowedOrigins: [origin])
        let api = AuthorizedHTTPClient(authorizer: authorizer)
        let echo = HTTPClientRequest(url: "\(provider.origin)/api/echo")
        let sent = try await authorizer.adapt(OutgoingRequest(echo, body: nil))
        for value in [authorizer, api, sent, manager, client, provider.facts["issuer"].text] as [Any] {
            listener.hear(value)
        }
        try provider.tell("expire", ["token": signedIn.tokens.accessToken])
        #expect(try await api.execute(echo, timeout: .seconds(3_600)).status == .ok)
        add(try await manager.currentTokens())
        let renewed = try await manager.refreshTokens()
        add(renewed)
        for value in [renewed, manager, manager.board.snapshot, await manager.authState()] as [Any] {
            listener.hear(value)
        }
        // The first refresh token comes again, which ends the session.
        await listener.attempt {
            try await client.refreshRequestProvider(
                RefreshRequest(
                    account: "a", refreshToken: signedIn.tokens.refreshToken ?? "", scope: nil, idToken: nil,
                    isRetryOfUnknownOutcome: false))
        }
        await listener.attempt { try await manager.refreshTokens() }
        await listener.attempt { try await api.execute(echo, timeout: .seconds(3_600)) }
        try await manager.updateTokens(renewed)
        await listener.attempt { try await manager.revokeTokens() }
        #expect(search.count >= 10)
        expectSilence()
    }

    private func add(_ tokens: TokenInfo?) {
        search.add(tokens?.accessToken)
        search.add(tokens?.refreshToken)
        search.add(tokens?.idToken)
    }

    /// With a server that repeats all it was told in everything it can say.
    @Test(.timeLimit(.minutes(20))) func noEchoOfAServersIsRepeated() async throws {
        for number in 0..<EchoingServer.replies {
            let echo = try await EchoingServer(number, search)
            await echo.askEverything(listener)
        }
        #expect(listener.count > EchoingServer.replies * 10)
        expectSilence()
    }

    /// With storages that fail, records that are damaged, providers that are chatty, and calls that are given up.
    @Test(.timeLimit(.minutes(20))) func noFailureOfTheManagersSaysWhatItHas() async throws {
        try await FailingManagers(search: search, listener: listener).failInEveryWay()
        expectSilence()
    }

    /// What a process leaves that traps with its tokens at hand, its backtrace with registers and all threads included.
    @Test(.timeLimit(.minutes(20))) func aCrashSaysNothing() async throws {
        let scene = try await WorkerScene()
        try scene.provider.tell("grace", ["seconds": 100_000])
        try await scene.signIn("alice")
        add(try scene.record()?.tokens)
        scene.goOn()
        let backtrace =
            "SWIFT_BACKTRACE=enable=yes,registers=all,threads=all,images=all,color=no,interactive=no"
        let victim = try scene.run(endingAt: "trapping", environment: [backtrace])
        #expect([SIGTRAP, SIGILL].contains(victim.signal))
        #expect(victim.errors.contains("Program crashed"))
        // The next process gets the tokens that the crashed process had received.
        #expect(try scene.run().token != nil)
        add(try scene.record()?.tokens)
        #expect(search.count >= 4)
        let said = victim.errors + victim.lines.joined(separator: "\n")
        for (secret, around) in search.found(in: said) {
            Issue.record("left by a crash: \(secret): \(around)")
        }
    }
}
#endif
