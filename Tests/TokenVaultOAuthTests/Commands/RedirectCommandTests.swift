#if OAuth
import Foundation
import Glibc
import NIOHTTP1
import TestLanes
import Testing

/// The provider's page and the redirect address of `vaultctl login`.
@Suite(.tags(.provider), .from(.all)) struct RedirectCommandTests {
    /// The profile keeps the redirect address, and another client of the provider does not get it.
    @Test func theRedirectAddressIsKept() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let first = [
            "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--no-browser",
        ]
        let again = ["login", "work", "--no-browser"]
        for arguments in [
            first, again, again + ["--redirect-uri", "http://localhost:8400/in"], again,
            again + ["--redirect-port", "8500"], again, again + ["--redirect-uri", "http://[::1]/in"], again,
            again + ["--client-id", "other"],
        ] {
            let outcome = try home.start(arguments).end()
            #expect(outcome.status == 0, "\(arguments): \(outcome.error)")
        }
        let asked = home.asked("browser").map { request in
            let address = request.split(separator: #""redirectAddress":""#).dropFirst().first
                .map { String($0.prefix { $0 != "\"" }).replacing("\\", with: "") }
            let port = request.split(separator: #""redirectPort":"#).dropFirst().first
                .map { String($0.prefix { $0.isNumber }) }
            return "\(address ?? "none") \(port ?? "none")"
        }
        // The worker chooses by the provider's metadata, each time: a later document may name no issuer.
        #expect(
            asked == [
                "none 0", "none 0", "http://localhost/in 8400", "http://localhost/in 8400",
                "http://localhost/in 8500", "http://localhost/in 8500", "http://[::1]/in 0",
                "http://[::1]/in 0", "none 0",
            ])
    }

    /// One provider could get the code of the other one (RFC 9700 section 4.4.2).
    @Test func aSharedRedirectAddressIsNoted() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        for (profile, issuer, address, isNoted) in [
            ("one", "https://a.example.com", "http://localhost:8400/in", false),
            ("one", "https://a.example.com", "http://localhost:8400/in", false),
            ("two", "https://b.example.com", "http://localhost:8401/other", false),
            ("three", "https://a.example.com", "http://localhost/in", false),
            ("four", "https://c.example.com", "http://localhost/in", true),
        ] {
            let outcome = try home.run(
                "login", profile, "--issuer", issuer, "--client-id", "fake", "--no-browser",
                "--redirect-uri", address)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(outcome.error.contains("has the same redirect URI") == isNoted, "\(outcome.error)")
        }
    }

    /// A dishonest provider's metadata names the page of an honest provider. The page is not shown, and
    /// --allow-origin is suggested.
    @Test func thePageOfAnotherProviderIsNotShown() async throws {
        let honest = try RunningProvider()
        let dishonest = try await ScriptedServer { [origin = honest.origin] asked in
            let own = "http://\(asked.headers.first(name: "Host") ?? "")"
            return .json(
                #"{"issuer":"\#(own)","authorization_endpoint":"\#(origin)/o/authorize/","#
                    + #""token_endpoint":"\#(own)/token"}"#)
        }
        let home = try SignInHome(honest)
        let arguments = [
            "login", "work", "--no-browser", "--issuer", dishonest.origin, "--client-id",
            honest.clientID("browser"), "--scope", "read",
        ]
        let refused = try home.start(arguments).end()
        #expect(refused.status == 5, "\(refused.status) \(refused.error)")
        #expect(refused.error.contains("add --allow-origin \(honest.origin)"), "\(refused.error)")
        #expect(!refused.error.contains("open this address"))
        // With --allow-origin, the honest provider still issues no code, because the path is not registered there.
        let misled = try home.start(arguments + ["--allow-origin", honest.origin])
        let address = try misled.expect(after: "open this address in a browser: ", until: "\n")
        #expect(address.contains("%2Fissuer%2F127.0.0.1"), "\(address)")
        let browser = try #require(home.environment["BROWSER"])
        let page = try RunningCommand(browser, [address], home.environment).end()
        #expect(page.output.contains("400"), "\(page)")
        misled.send(SIGINT)
        #expect(try misled.end().status == 130)
        #expect(dishonest.asked.allSatisfy { $0.path.hasPrefix("/.well-known/") })
    }
}
#endif
