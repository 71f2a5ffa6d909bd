import Measuring
import SystemPackage
import TokenVault
import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What it costs to have a valid access token at hand, to put it into a request, and to send that to this machine.
///
/// `auth-benchmark DIRECTORY`; the tokens are in a vault file, as an app has them.
@main enum AuthBenchmark {
    /// Calls that are timed together: one takes less than reading the clock does.
    static let calls = 1_000
    static let rounds = 2_000

    static func main() async throws {
        let parent = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "."
        try await withTemporaryDirectory(in: parent) { try await run(in: FilePath($0)) }
    }

    private static func run(in directory: FilePath) async throws {
        let vault = try BlockingFileVault.create(
            at: directory.appending("benchmark.vault"),
            unlockMethod: .keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")),
            configuration: FileVaultConfiguration(stateDirectory: directory.appending("state")))
        let manager = TokenManager(
            storage: FileTokenStorage(vault, service: "benchmark"), account: "work",
            refreshRequestProvider: { _ in throw RefreshFailure(.notSent) })
        try await manager.updateTokens(
            TokenInfo(
                accessToken: String(repeating: "fake", count: 256), refreshToken: "fake",
                accessTokenExpiry: .now.addingTimeInterval(3_600)))
        let origin = RequestOrigin.https("api.example.com")
        let provider = TokenAuthProvider(manager: manager, allowedOrigins: [origin])

        var (token, header) = (Measurement(), Measurement())
        for _ in 0..<rounds {
            var start = ContinuousClock.now
            for _ in 0..<calls { _ = try await manager.validAccessToken() }
            token.add(start.microseconds / Double(calls))
            start = ContinuousClock.now
            for _ in 0..<calls { _ = try await provider.adapt(Request(origin: origin)) }
            header.add(start.microseconds / Double(calls))
        }
        Report.say("a token of 1 KiB that is valid")
        Report.judge(
            "auth: validAccessToken()", token.median, .atMost(2), unit: "µs",
            of: [("put into a request", header)])
        let sending = try await SendingBenchmark.run(manager)
        Report.say("a request to this machine with that token, and one with a header put in by hand, in turn")
        Report.judge(
            "auth: request of AuthorizedHTTPClient / with the header by hand",
            Spread(sending.authorized, per: sending.byHand), .atMost(1.01),
            of: [("AuthorizedHTTPClient", sending.authorized), ("AsyncHTTPClient", sending.byHand)])
        Report.judge(
            "auth: two clients without a difference", Spread(sending.bare, per: sending.control), nil)
    }

    private struct Request: AuthorizableRequest {
        var origin: RequestOrigin?
        var isReplayable: Bool { true }
        var authorization = ""
        mutating func setHeader(_ name: String, to value: String) { authorization = value }
    }
}
