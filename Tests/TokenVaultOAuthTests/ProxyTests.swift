#if OAuth
import AsyncHTTPClient
import NIOSSL
import TestLanes
import Testing
import TokenVaultAuth
@testable import TokenVaultOAuth

/// Requests to providers through a proxy (`HTTPS_PROXY`, `NO_PROXY`).
@Suite(.tags(.provider), .from(.all)) struct ProxyTests {
    private func status(
        _ address: String, _ configuration: OAuthTransport.Configuration
    ) async throws -> Int? {
        let address = try #require(WebAddress(address))
        return try? await OAuthTransport(configuration: configuration).get(address).status
    }

    @Test func onlyHostsWithoutAnExceptionUseTheProxy() async throws {
        let provider = try RunningProvider()
        let server = try provider.tell("encrypt", ["name": "id.example"])
        var trust = TLSConfiguration.makeClientConfiguration()
        trust.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(server["certificate"].text.utf8)))
        var configuration = OAuthTransport.Configuration()
        configuration.requestTimeout = .seconds(3_600)
        configuration.tlsConfiguration = trust
        let port = try provider.tell("proxy")["port"].number
        configuration.proxy = ProxySettings.proxy("http://fake%20user:fake%40word@127.0.0.1:\(port)")
        let path = "/o/.well-known/openid-configuration"
        let address = "https://id.example:\(server["port"].number)\(path)"
        #expect(try await status(address, configuration) == 200)
        // Requests to this machine do not use the proxy.
        #expect(try await status("\(provider.origin)\(path)", configuration) == 200)
        configuration.proxyExceptions = ["other.example", ".example"]
        #expect(try await status(address, configuration) == nil)
        let requests = try provider.tell("proxied")["requests"]
        #expect(requests.count == 1)
        #expect(requests[0]["method"].text == "CONNECT")
        #expect(requests[0]["target"].text == "id.example:\(server["port"].number)")
        // "fake user:fake@word"
        #expect(requests[0]["authorization"].text == "Basic ZmFrZSB1c2VyOmZha2VAd29yZA==")
    }

    @Test(arguments: [
        ("http://proxy.example:3128", "proxy.example", 3_128), ("proxy.example:3128", "proxy.example", 3_128),
        ("http://proxy.example:3128/", "proxy.example", 3_128), ("proxy.example", "proxy.example", 1_080),
        ("HTTP://192.0.2.1:80", "192.0.2.1", 80), ("socks5://proxy.example:1081", "proxy.example", 1_081),
    ])
    func aProxyIsRead(_ address: String, _ host: String, _ port: Int) throws {
        let proxy = try #require(ProxySettings.proxy(address))
        #expect(proxy.host == host && proxy.port == port && proxy.authorization == nil)
    }

    @Test(arguments: [
        "", "https://proxy.example:443", "ftp://proxy.example", "http://", "http://a@proxy.example",
        "http://a:%zz@proxy.example", "socks5://a:b@proxy.example", "http://proxy.example:0", "a b",
    ])
    func anotherProxyIsRejected(_ address: String) {
        #expect(ProxySettings.proxy(address) == nil)
    }

    @Test(
        arguments: [
            ("https://id.example", [], false), ("https://127.0.0.1:8443", [], true),
            ("http://localhost", [], true),
            ("https://id.example", ["*"], true), ("https://id.example", ["ID.example"], true),
            ("https://a.id.example", ["id.example"], true), ("https://a.id.example", [".id.example"], true),
            ("https://id.example", [".id.example"], true), ("https://bad-id.example", ["id.example"], false),
            ("https://id.example", ["id.example:443"], true),
            ("https://id.example", ["id.example:8443"], false),
            ("https://id.example", ["", "."], false), ("https://192.0.2.1", ["192.0.2.1"], true),
            ("https://a.id.example", ["*.id.example"], true), ("https://192.0.2.1", ["0.2.1"], false),
            ("https://[2001:db8::1]", ["[2001:db8::1]"], true), ("https://[2001:db8::1]", ["db8::1"], false),
        ] as [(String, [String], Bool)])
    func anExceptionIsAHostOrADomain(_ address: String, _ exceptions: [String], _ isDirect: Bool) throws {
        let origin = try #require(RequestOrigin(address: address))
        #expect(ProxySettings.isDirect(origin, exceptions) == isDirect)
    }
}
#endif
