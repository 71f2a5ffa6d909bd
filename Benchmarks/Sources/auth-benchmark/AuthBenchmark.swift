import Glibc
import Measuring
import SystemPackage
import TokenVault
import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What it costs to have a valid access token at hand, to put it into a request, and to send that to this machine.
///
/// `auth-benchmark`; the tokens are in a vault file, as an app has them.
@main enum AuthBenchmark {
    /// Calls that are timed together: one takes less than reading the clock does.
    static let calls = 1_000
    static let rounds = 2_000
    /// What a valid token may take, in µs.
    static let limit = 2.0
    /// What adding the header may take of a request, in per cent.
    static let headerLimit = 1.0

    static func main() async throws {
        let directory = FilePath("/tmp/auth-benchmark-\(getpid())")
        guard mkdir(directory.string, 0o700) == 0 else { throw Errno(rawValue: errno) }
        defer { Measuring.run(command: ["/bin/rm", "-rf", directory.string]) }
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
            token.add(microseconds(since: start) / Double(calls))
            start = ContinuousClock.now
            for _ in 0..<calls { _ = try await provider.adapt(Request(origin: origin)) }
            header.add(microseconds(since: start) / Double(calls))
        }
        print(
            "a token of 1 KiB that is valid: p50 \(rounded(token.p50)) µs, p99 \(rounded(token.percentile(0.99))) µs; "
                + "put into a request: p50 \(rounded(header.p50)) µs")
        let isTokenMet = met(
            token.p50 <= limit, "validAccessToken(): \(rounded(token.p50)) µs (at most \(limit))")
        let sending = try await SendingBenchmark.run(manager)
        print(
            "a request to this machine with that token: p50 \(rounded(sending.bare.p50)) µs with AsyncHTTPClient, "
                + "\(rounded(sending.control.p50)) µs with another one, "
                + "\(rounded(sending.authorized.p50)) µs with AuthorizedHTTPClient")
        let share = (2 * sending.authorized.p50 / (sending.bare.p50 + sending.control.p50) - 1) * 100
        let isShareMet = met(
            share < headerLimit,
            "adding the header: \(rounded(share)) % of the request (less than \(headerLimit))")
        // What was measured is not lost with the process.
        fflush(nil)
        guard isTokenMet, isShareMet else { throw Missed() }
    }

    private static func met(_ isMet: Bool, _ what: String) -> Bool {
        print("  \(isMet ? "met   " : "MISSED")  \(what)")
        return isMet
    }

    private struct Request: AuthorizableRequest {
        var origin: RequestOrigin?
        var isReplayable: Bool { true }
        var authorization = ""
        mutating func setHeader(_ name: String, to value: String) { authorization = value }
    }

    private struct Missed: Error {}

    private static func microseconds(since start: ContinuousClock.Instant) -> Double {
        let parts = start.duration(to: .now).components
        return Double(parts.seconds) * 1e6 + Double(parts.attoseconds) / 1e12
    }
}
