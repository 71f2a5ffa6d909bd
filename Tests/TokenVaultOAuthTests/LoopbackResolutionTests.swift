#if OAuth
import AsyncHTTPClient
import TestLanes
import Testing
import TokenVaultAuth

@testable import TokenVaultOAuth

/// `localhost` is this machine, whatever a resolver says of it.
@Suite(.tags(.provider), .from(.all)) struct LoopbackResolutionTests {
    @Test func noResolverIsAskedOfIt() {
        #expect(OAuthTransport.settings(for: .init()).dnsOverride == ["localhost": "127.0.0.1"])
        var configuration = HTTPClient.Configuration()
        configuration.dnsOverride = ["localhost": "192.0.2.1", "a": "b"]
        configuration.resolveLocalhostLiterally()
        #expect(configuration.dnsOverride == ["localhost": "127.0.0.1", "a": "b"])
    }

    @Test(arguments: [
        ("http://LocalHost:80/a?b=localhost", "http://localhost:80/a?b=localhost"),
        ("HTTP://LOCALHOST", "HTTP://localhost"),
        ("http://localhost:1/LOCALHOST", "http://localhost:1/LOCALHOST"),
        ("http://localhost.example/", "http://localhost.example/"),
        ("https://a.example/localhost", "https://a.example/localhost"),
    ])
    func itIsSpeltAsTheClientKnowsIt(_ address: String, _ spelt: String) {
        var request = HTTPClientRequest(url: address)
        request.spellLocalhost(of: RequestOrigin(address: address))
        #expect(request.url == spelt)
    }

    /// A server on this machine is reached by any spelling of the name.
    @Test(arguments: ["localhost", "LocalHost"]) func itIsReached(_ host: String) async throws {
        let server = try await ScriptedServer(always: .json("{}"))
        let address = try #require(WebAddress.secure("http://\(host):\(server.port)/x"))
        let answer = try await OAuthTransport().get(address)
        #expect(answer.isSuccess && server.asked.map(\.path) == ["/x"])
    }
}
#endif
