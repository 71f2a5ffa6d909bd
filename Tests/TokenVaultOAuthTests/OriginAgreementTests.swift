#if OAuth
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// What is taken for a request's origin is where AsyncHTTPClient connects to.
@Suite(.tags(.provider), .from(.all)) struct OriginAgreementTests {
    /// Addresses from pieces that are right, and wrong, and from those with a byte changed.
    private func addresses(_ count: Int) -> [String] {
        var generator = SeededNumbers(seed: 1)
        func one(_ pieces: [String]) -> String { pieces.randomElement(using: &generator) ?? "" }
        return (0..<count).map { number in
            let host = one([
                "a.example", "API.Example.com", "127.0.0.1", "[::1]", "[2001:db8::FF]", "localhost",
                "a.example.",
                "xn--bcher-kva.example", "a%2eexample", "127.1", "0x7f.1", "", "[::1%25lo]", "a..b", "a_b",
                "[::g]",
                "evil.example", "bücher.example", "1.2.3.4.5", "[1::2::3]", "[::ffff:1.2.3.4]", "a.example\\",
            ])
            var address =
                one(["https", "http", "HTTPS", "hTTp", "ftp", "https", "http"]) + one([":", "::", ":", ":"])
                + one(["//", "/", "//", "//", "\\\\", "///"])
                + one(["", "", "", "", "user@", "a.example:80@", "@"])
                + host + one(["", ":443", ":80", ":8080", ":", ":0", ":65536", ":007", ":x", ""])
                + one([
                    "", "/", "/x?y=1", "?x", "/\\evil.example", "/@evil.example", "#x", "/[x]", "/{x}|",
                    "/%zz",
                ])
            guard number % 2 == 0, !address.isEmpty else { return address }
            let strange = "@:/\\?#[]%.\t\n\r \u{0}\u{7f}|^`{}<>\"'()*+,;=!$&~-_0aAfFxX"
            let place = address.unicodeScalars.indices.randomElement(using: &generator) ?? address.startIndex
            let what = String(strange.randomElement(using: &generator) ?? "@")
            if Bool.random(using: &generator) {
                address.unicodeScalars.insert(contentsOf: what.unicodeScalars, at: place)
            } else {
                address.unicodeScalars.replaceSubrange(place...place, with: what.unicodeScalars)
            }
            return address
        }
    }

    @Test func twoParsersMoreSayTheSame() {
        var agreed = 0
        for address in addresses(100_000) {
            guard let origin = RequestOrigin(address: address) else { continue }
            // AsyncHTTPClient connects to the host and port that `URL` returns.
            if let url = URL(string: address) {
                #expect(
                    RequestOrigin(scheme: url.scheme ?? "", host: url.host ?? "", port: url.port) == origin,
                    "\(address)")
                #expect(url.user == nil && url.password == nil, "\(address)")
            }
            if let parts = URLComponents(string: address) {
                let host = parts.encodedHost ?? ""
                #expect(
                    RequestOrigin(scheme: parts.scheme ?? "", host: host, port: parts.port) == origin,
                    "\(address)")
                #expect(parts.user == nil && parts.password == nil && parts.fragment == nil, "\(address)")
            }
            agreed += 1
        }
        #expect(agreed > 2_000)
    }

    /// Every host of the test's is this machine; which one was meant is in the `Host` header.
    @Test func aTokenComesOnlyWhereItsOriginLeads() async throws {
        let server = try await ScriptedServer(always: .init())
        let manager = TokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a") { _ in
            throw RefreshFailure(.notSent)
        }
        try await manager.updateTokens(
            TokenInfo(accessToken: "fake-1", accessTokenExpiry: Date().addingTimeInterval(3_600)))
        var configuration = HTTPClient.Configuration()
        // A refused connection is reported at once.
        configuration.connectionPool.retryConnectionEstablishment = false
        for name in ["a.example", "evil.example", "a.example.evil.example", "a.example.", "A.EXAMPLE"] {
            configuration.dnsOverride[name] = "127.0.0.1"
        }
        let allowed = RequestOrigin(scheme: "http", host: "a.example", port: server.port)
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [allowed], allowsPlaintext: true),
            configuration: configuration)
        let port = server.port
        let hostile = [
            "http://a.example@evil.example:\(port)/", "http://a.example:\(port)@evil.example:\(port)/",
            "http://a.example:\(port)\\@evil.example:\(port)/", "http://a.example\\@evil.example:\(port)/",
            "http://evil.example:\(port)/@a.example:\(port)", "http://evil.example:\(port)?a.example:\(port)",
            "http://a.example:\(port).evil.example:\(port)/", "http://a.example.evil.example:\(port)/",
            "http://evil.example:\(port)#@a.example:\(port)/",
            "http://a.example:\(port)#@evil.example:\(port)/",
            "http://a.example%40evil.example:\(port)/", "http://a.example%2f@evil.example:\(port)/",
            "http://evil.example:\(port)\\@a.example:\(port)/",
            "http://evil.example\t:\(port)@a.example:\(port)/",
            "http://a.example\n@evil.example:\(port)/", "http://a.example.:\(port)/",
            "http://127.0.0.1:\(port)/",
            "http:\\\\a.example:\(port)/", "http:///a.example:\(port)/", " http://a.example:\(port)/",
        ]
        let plain = ["http://a.example:\(port)/x", "http://A.EXAMPLE:\(port)?x", "HTTP://a.example:\(port)"]
        for address in hostile + plain {
            // AsyncHTTPClient rejects some of these addresses itself.
            _ = try? await client.execute(HTTPClientRequest(url: address), timeout: .seconds(3_600))
        }
        let told = server.asked.filter { $0.headers.contains(name: "Authorization") }
        #expect(
            told.map { $0.headers["Host"].map { $0.lowercased() } }
                == plain.map { _ in ["a.example:\(port)"] })
        // The other requests arrived without a token.
        #expect(server.asked.count > plain.count + 5)
    }
}

/// The same numbers for the same seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
#endif
