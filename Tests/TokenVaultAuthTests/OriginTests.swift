import Testing

@testable import TokenVaultAuth

/// The origin that an address leads to. It decides which server gets a token.
@Suite struct OriginTests {
    @Test(arguments: [
        ("https://a.example", "https", "a.example", 443), ("http://a.example", "http", "a.example", 80),
        ("HTTPS://API.Example.COM:8443/X?Y", "https", "api.example.com", 8_443),
        ("hTTp://a.example:80/", "http", "a.example", 80),
        ("https://a.example?x=1", "https", "a.example", 443),
        ("https://a.example/?filter[name]=x|y", "https", "a.example", 443),
        ("https://a-b.c_d.example:65535/", "https", "a-b.c_d.example", 65_535),
        ("https://xn--bcher-kva.example/", "https", "xn--bcher-kva.example", 443),
        ("https://a.example/@evil.example/", "https", "a.example", 443),
        ("https://a.example/%2e%2e/\\evil.example", "https", "a.example", 443),
        ("https://a.example?@evil.example", "https", "a.example", 443),
        ("http://localhost:1", "http", "localhost", 1), ("https://a", "https", "a", 443),
        ("https://a1.e4xample2", "https", "a1.e4xample2", 443),
        ("http://127.0.0.1:8080/", "http", "127.0.0.1", 8_080),
        ("http://255.255.255.255", "http", "255.255.255.255", 80),
        ("https://1.2.3.4.example", "https", "1.2.3.4.example", 443),
        ("http://[::1]", "http", "::1", 80), ("http://[::]:9/", "http", "::", 9),
        ("https://[2001:DB8::FF]/", "https", "2001:db8::ff", 443),
        ("https://[1:2:3:4:5:6:7:8]", "https", "1:2:3:4:5:6:7:8", 443),
        ("https://[1:2:3:4:5:6:7::]", "https", "1:2:3:4:5:6:7::", 443),
        ("https://[::ffff:1.2.3.4]:443", "https", "::ffff:1.2.3.4", 443),
    ])
    func addressesWithoutADoubt(_ address: String, _ scheme: String, _ host: String, _ port: Int) throws {
        let origin = try #require(RequestOrigin(address: address))
        #expect(origin.scheme == scheme)
        #expect(origin.host == host)
        #expect(origin.port == port)
        #expect(origin == RequestOrigin(scheme: scheme, host: host, port: port))
    }

    /// What one program reads otherwise than another, or what is none.
    @Test(arguments: [
        // A user name, which may look like a host.
        "https://a.example@evil.example", "https://user:pw@a.example/", "https://@a.example/",
        "https://a.example:80@evil.example/", "https://a.example:@evil.example", "https://:@a.example",
        // A browser reads a backslash as a slash.
        "https://a.example\\@evil.example", "https://a.example\\.evil.example/", "https:\\\\a.example/",
        "https:/\\a.example", "https://a.example\\/", "https://\\a.example",
        // Characters that some parsers drop, and at which other parsers end the host.
        "https://a.ex\tample/", "https://a.example\n.evil.example/", " https://a.example",
        "https://a.example ",
        "https://a.example/\r\nHost: evil.example", "https://a.example/\u{0}", "https://a.example/ x",
        "\u{feff}https://a.example", "https://a\u{ad}.example", "https://a.example/\u{7f}",
        // A percent sign: one parser decodes it, another looks the name up unchanged.
        "https://a%2eexample/", "https://a.example%2f@evil.example", "https://%61.example",
        "https://a.example%00",
        "https://a.example%40evil.example", "https://a.example:%34%34%33",
        // Ports.
        "https://a.example:", "https://a.example:/", "https://a.example:0", "https://a.example:65536",
        "https://a.example:0443", "https://a.example:+443", "https://a.example:-1", "https://a.example:443x",
        "https://a.example:443:443", "https://a.example:18446744073709552059", "https://a.example: 443",
        // Names.
        "https://", "https:///", "https:///a.example", "https://?", "https://:443", "https://.", "https://..",
        "https://a.example.", "https://.a.example", "https://a..example", "https://a.example./",
        "https://a,b.example", "https://a*b.example", "https://$a", "https://(a)", "https://a;b",
        "https://a=b",
        "https://b\u{fc}cher.example", "https://a\u{3002}example", "https://\u{24d0}.example",
        "https://\(String(repeating: "a", count: 64)).example",
        "https://\(String(repeating: "a.", count: 130))example",
        // Numbers that `inet_aton` reads as addresses, and other parsers as names.
        "http://127.1", "http://2130706433", "http://0x7f000001", "http://0177.0.0.1", "http://127.0.0.01",
        "http://127.0.0.256", "http://127.0.0.1.", "http://1.2.3.4.5", "http://a.0x7f", "http://a.1",
        "http://0x",
        // IPv6.
        "http://[]", "http://[::1", "http://::1", "http://::1]", "http://[::1]x", "http://[::1]]",
        "http://[::1%25lo]",
        "http://[::1%lo]", "http://[1:2:3:4:5:6:7]", "http://[1:2:3:4:5:6:7:8:9]", "http://[1::2::3]",
        "http://[:1]", "http://[1:]", "http://[12345::]", "http://[::g]", "http://[:::]", "http://[::1.2.3]",
        "http://[1:2:3:4:5:6:7:1.2.3.4]", "http://[::1.2.3.4:5]", "http://[::01.2.3.4]", "http://[a.example]",
        "http://[v1.a]", "http://[::1]@evil.example", "http://[::1]evil.example",
        "http://[1:2:3:4:5:6:7:8::]",
        // Wrong and missing schemes.
        "", "a.example", "//a.example", "/x", "https", "https:", "https:/", "https:a.example",
        "https:/a.example",
        "ftp://a.example", "ws://a.example", "httpss://a.example", "xhttps://a.example",
        "http+unix://a.example",
        "javascript:alert(1)//https://a.example", "https+unix://a", "http\u{1a}//a", "httP:\u{f}\u{f}a",
        // A fragment concerns only the browser, and not every parser ends the host there.
        "https://a.example#@evil.example", "https://a.example/#x",
    ])
    func addressesWithADoubtAreNone(_ address: String) {
        #expect(RequestOrigin(address: address) == nil)
    }
}
