#if OAuth
import AsyncHTTPClient
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOSSL
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// A server of HTTP/2 does not end the process by what it gives as a status: AsyncHTTPClient, or NIO, would.
@Suite(.tags(.provider), .from(.all), .serialized) struct StreamStatusTests {
    private let provider: RunningProvider

    init() throws { provider = try RunningProvider() }

    /// What a server that always answers with these heads is found to answer, and on how many streams it was asked.
    private func ask(
        _ heads: [HPACKHeaders], ends: Bool
    ) async throws -> (answer: Result<UInt, any Error>, streams: Int) {
        let encryption = try provider.tell("encrypt")
        let server = try await StreamServer(always: heads, ends: ends, certificate: encryption["file"].text)
        let manager = TokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a") { _ in
            throw RefreshFailure(.notSent)
        }
        try await manager.updateTokens(TokenInfo(accessToken: "fake"))
        var configuration = HTTPClient.Configuration()
        configuration.tlsConfiguration = .makeClientConfiguration()
        configuration.tlsConfiguration?.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(encryption["certificate"].text.utf8)))
        let streams = Mutex(0)
        configuration.http2StreamChannelDebugInitializer = { channel in
            streams.withLock { $0 += 1 }
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        let origin = RequestOrigin(scheme: "https", host: "127.0.0.1", port: server.port)
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [origin]),
            configuration: configuration)
        let answer: Result<UInt, any Error>
        do {
            let request = HTTPClientRequest(url: "https://127.0.0.1:\(server.port)/")
            answer = .success(
                try await client.execute(request, timeout: .seconds(3_600)).status.code)
        } catch { answer = .failure(error) }
        return (answer, streams.withLock { $0 })
    }

    @Test(
        arguments: ["-5", "000", "042", "99", "1", "101", "1000", "+20", "a", "99999999999999999999"],
        [true, false])
    func aStatusThatIsNoneIsAnError(_ status: String, _ ends: Bool) async throws {
        let outcome = try await ask([[":status": status]], ends: ends)
        #expect(throws: ImpossibleStatus.self) { try outcome.answer.get() }
        #expect(outcome.streams == 1)
    }

    /// Nor after the beginning of an answer.
    @Test(arguments: ["042", "101"])
    func aStatusThatIsNoneIsAnErrorAfterAnother(_ status: String) async throws {
        let heads: [HPACKHeaders] = [[":status": "103"], [":status": status], [":status": "200"]]
        let outcome = try await ask(heads, ends: true)
        #expect(throws: ImpossibleStatus.self) { try outcome.answer.get() }
    }

    @Test func anAnswerWithItsBeginningsAndItsTrailersIsOne() async throws {
        let outcome = try await ask(
            [[":status": "100"], [":status": "103"], [":status": "299"], ["later": "yes"]], ends: true)
        #expect(try outcome.answer.get() == 299)
        // The app's own initializer for new streams runs as well.
        #expect(outcome.streams == 1)
    }
}
#endif
