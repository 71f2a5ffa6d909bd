#if OAuth
import AsyncHTTPClient
import Foundation
import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// The port that a browser brings an answer to, and all other programs that find it.
@Suite(.tags(.provider), .from(.all)) struct LoopbackRedirectTests {
    static let issuer = "https://id.example"
    /// It says at once that a connection is refused.
    private static let browser: HTTPClient = {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }()

    private func listen(iss: Bool = false, path: String = "/callback") async throws -> LoopbackRedirect {
        try await LoopbackRedirect.listen(
            for: try metadata(Self.issuer, iss: iss), at: "http://127.0.0.1\(path)")
    }

    private func get(
        _ address: String, method: HTTPMethod = .GET, host: String? = nil
    ) async throws -> (status: Int, body: String, headers: HTTPHeaders) {
        var request = HTTPClientRequest(url: address)
        request.method = method
        if let host { request.headers.add(name: "Host", value: host) }
        let response = try await Self.browser.execute(request, timeout: .seconds(3_600))
        let body = try await response.body.collect(upTo: 1 << 20)
        return (Int(response.status.code), String(buffer: body), response.headers)
    }

    private func state(_ redirect: LoopbackRedirect) throws -> String {
        try #require(redirect.state.unprotectedText())
    }

    @Test func anAnswerIsTakenOnce() async throws {
        let redirect = try await listen()
        #expect(redirect.redirectURI.hasPrefix("http://127.0.0.1:"))
        #expect(redirect.redirectURI.hasSuffix("/callback"))
        async let answer = redirect.answer(within: .seconds(3_600))
        let page = try await get("\(redirect.redirectURI)?code=fake-code&state=\(try state(redirect))")
        #expect(page.status == 200)
        #expect(page.body.contains("close this window"))
        #expect(!page.body.contains("fake-code"))
        #expect(page.headers["Cache-Control"] == ["no-store"])
        #expect(page.headers["Referrer-Policy"] == ["no-referrer"])
        #expect(page.headers["Connection"] == ["close"])
        #expect(try await answer.code() == "fake-code")
        // The listener is closed.
        await #expect(throws: (any Error).self) { try await get(redirect.redirectURI) }
    }

    /// With `response_mode=form_post`, the browser sends the answer in a form.
    @Test func aFormIsAnAnswer() async throws {
        let redirect = try await listen()
        let port = try #require(redirect.redirectURI.split(separator: ":").last?.prefix { $0 != "/" })
        func post(
            _ form: String, _ address: String = redirect.redirectURI, host: String? = nil
        ) async throws -> (status: Int, body: String) {
            var request = HTTPClientRequest(url: address)
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
            if let host { request.headers.add(name: "Host", value: host) }
            request.body = .bytes(ByteBuffer(string: form))
            let response = try await Self.browser.execute(request, timeout: .seconds(3_600))
            let body = try await response.body.collect(upTo: 1 << 20)
            return (Int(response.status.code), String(buffer: body))
        }
        async let answer = redirect.answer(within: .seconds(3_600))
        let state = try state(redirect)
        let right = "code=fake-code&state=\(state)"
        #expect(try await post(right, "http://127.0.0.1:\(port)/other").status == 404)
        #expect(try await post(right, host: "evil.example:\(port)").status == 404)
        #expect(try await post("code=fake-code&state=wrong").status == 400)
        #expect(try await post("").status == 400)
        #expect(try await post(right + "&more=" + String(repeating: "x", count: 16 << 10)).status == 400)
        // A `POST` ignores fields in its address.
        #expect(try await post("", "\(redirect.redirectURI)?\(right)").status == 400)
        let page = try await post(right)
        #expect(page.status == 200 && page.body.contains("close this window"))
        #expect(!page.body.contains("fake-code"))
        #expect(try await answer.code() == "fake-code")
    }

    /// The address that a browser on another machine ended at.
    @Test func aPastedAddressIsAnAnswer() async throws {
        let redirect = try await listen()
        async let answer = redirect.answer(within: .seconds(3_600))
        let state = try state(redirect)
        for text in [
            "", "fake-code", "\(redirect.redirectURI)?code=fake&state=wrong", redirect.redirectURI,
            "code=fake&code=fake&state=\(state)", "state=\(state)&code=%", "state=\(state)&co",
        ] {
            #expect(!redirect.take(callback: text), "\(text)")
        }
        #expect(redirect.take(callback: "'\(redirect.redirectURI)?state=\(state)&code=fake-code' \r"))
        #expect(try await answer.code() == "fake-code")
        // Facebook appends this fragment.
        let other = try await listen()
        async let second = other.answer(within: .seconds(3_600))
        #expect(
            other.take(callback: "\(other.redirectURI)?code=fake-2&state=\(try self.state(other))#_=_"))
        #expect(try await second.code() == "fake-2")
    }

    @Test func aPastedRefusalEndsTheWait() async throws {
        let redirect = try await listen()
        async let answer = redirect.answer(within: .seconds(3_600))
        #expect(redirect.take(callback: "error=access_denied&state=\(try state(redirect))"))
        let outcome = try await answer
        #expect(throws: OAuthError.accessDenied) { try outcome.code() }
    }

    /// A dishonest provider that leads the browser on to another one has a path that is not registered there
    /// (RFC 9700 section 4.4.2.2). A provider that must name itself needs no path of its own (RFC 9207).
    @Test(arguments: [
        ("https://id.example", false, "/issuer/id.example"),
        ("https://id.example/", false, "/issuer/id.example"),
        ("https://id.example:8443/realms/a", false, "/issuer/id.example:8443/realms/a"),
        ("https://id.example", true, "/callback"),
    ])
    func theUsualPathIsOneOfTheIssuer(_ issuer: String, _ isNamed: Bool, _ path: String) async throws {
        let provider = try ProviderMetadata(
            issuer: issuer, tokenEndpoint: "https://id.example/token",
            authorizationResponseIssParameterSupported: isNamed)
        let redirect = try await LoopbackRedirect.listen(for: provider)
        let port = try #require(
            redirect.redirectURI.split(separator: ":").dropFirst(2).first?.prefix { $0 != "/" })
        #expect(redirect.redirectURI == "http://127.0.0.1:\(port)\(path)")
    }

    /// A browser chooses one of the addresses of `localhost`.
    @Test(arguments: ["http://localhost/signed-in", "http://[::1]/signed-in", "http://localhost"])
    func localhostAndIPv6AreSupported(_ address: String) async throws {
        let provider = try metadata(Self.issuer)
        let redirect = try await LoopbackRedirect.listen(for: provider, at: address)
        let port = try #require(redirect.redirectURI.split(separator: ":").last?.prefix { $0 != "/" })
        let host = String(address.dropFirst("http://".count).prefix { $0 != "/" })
        let path = String(address.dropFirst("http://".count + host.count))
        #expect(redirect.redirectURI == "http://\(host):\(port)\(path)")
        let target = path.isEmpty ? "/" : path
        let query = "?code=right&state=\(try state(redirect))"
        let all = host == "localhost" ? ["127.0.0.1", "[::1]"] : ["[::1]"]
        for place in all {
            // The listener answers only under the registered name.
            let other = "http://\(place):\(port)\(target)"
            #expect(try await get(other + query, host: "evil.example:\(port)").status == 404)
            #expect(try await get(other, host: "\(host):\(port)").status == 400)
        }
        let page = redirect.page(leadingTo: "http://\(host):\(port)\(target)\(query)")
        #expect(page.hasPrefix("http://\(host):\(port)/start/"))
        async let answer = redirect.answer(within: .seconds(3_600))
        #expect(
            try await get(
                "http://\(try #require(all.last)):\(port)\(target)\(query)", host: "\(host):\(port)"
            )
            .status == 200)
        #expect(try await answer.code() == "right")
    }

    /// A registered port serves one sign-in after the other, although closed connections to it wait for a minute
    /// (`SO_REUSEADDR`, socket(7)). A listener that is opened again would fail while another test starts a program.
    @Test func aPortIsFreeAgainAtOnce() async throws {
        let redirect = try await LoopbackRedirect.listen(
            for: try metadata(Self.issuer), at: "http://localhost/in")
        for channel in redirect.channels {
            #expect(try await channel.getOption(.socketOption(.so_reuseaddr)).get() == 1)
        }
        #expect(!redirect.channels.isEmpty)
    }

    /// The kernel lists a socket that was closed as one of root.
    @Test func aClosedSocketIsIgnored() {
        func entry(_ port: Int, _ remote: Int, _ state: Substring, _ user: Substring) -> LoopbackPeer.Entry {
            LoopbackPeer.Entry(isIPv6: false, port: port, remotePort: remote, state: state, user: user)
        }
        let listener = entry(80, 0, "0A", "0")
        for state in ["01", "02", "04", "05", "06", "07", "08"] as [Substring] {
            #expect(
                LoopbackPeer.isOfSameUser(
                    9, as: 80, isIPv6: false, among: [listener, entry(9, 80, state, "0")]) == (state == "01"))
        }
        #expect(
            !LoopbackPeer.isOfSameUser(9, as: 80, isIPv6: false, among: [listener, entry(9, 80, "01", "7")]))
        #expect(
            !LoopbackPeer.isOfSameUser(9, as: 80, isIPv6: true, among: [listener, entry(9, 80, "01", "0")]))
    }

    /// Another program at the other address of `localhost` could get the answer.
    @Test func aPortThatIsTakenAtOneAddressIsNotUsed() async throws {
        let other = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "::1", port: 0).get()
        let port = try #require(other.localAddress?.port)
        let provider = try metadata(Self.issuer)
        #expect(
            await failure { () async throws(OAuthError) in
                try await LoopbackRedirect.listen(for: provider, at: "http://localhost:\(port)/")
            } == .cannotListen)
        try await other.close()
    }

    @Test func whatIsNotTheAnswerChangesNothing() async throws {
        let redirect = try await listen()
        let state = try state(redirect)
        let origin = String(redirect.redirectURI.dropLast("/callback".count))
        let query = "?code=forged&state=\(state)"
        for path in [
            "/", "/callback/", "/Callback", "/callback%20", "/favicon.ico", "//callback", "/callback;x",
        ] {
            #expect(try await get(origin + path + query).status == 404)
        }
        // A `POST` needs its answer in the body.
        #expect(try await get(redirect.redirectURI + query, method: .POST).status == 400)
        for method in [HTTPMethod.PUT, .HEAD, .OPTIONS, .DELETE] {
            #expect(try await get(redirect.redirectURI + query, method: method).status == 404)
        }
        for host in ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example"] {
            #expect(try await get(redirect.redirectURI + query, host: host).status == 404)
        }
        for wrong in [
            "", "?", "?code=forged", "?code=forged&state=", "?code=forged&state=\(state)x",
            "?code=forged&state=\(state.dropLast())", "?error=access_denied", "?error=access_denied&state=x",
            "?code=forged&state=\(state)&state=\(state)", "?code=a&code=b&state=\(state)", "?state=%zz",
        ] {
            #expect(try await get(redirect.redirectURI + wrong).status == 400)
        }
        async let answer = redirect.answer(within: .seconds(3_600))
        #expect(try await get("\(redirect.redirectURI)?state=\(state)&code=right").status == 200)
        #expect(try await answer.code() == "right")
    }

    /// The port that a browser does not name (RFC 9110 section 7.2).
    @Test(arguments: [
        (80, "127.0.0.1", true), (80, "127.0.0.1:80", true), (8_080, "127.0.0.1", false),
        (80, "localhost", false), (80, "127.0.0.1:8080", false),
    ])
    func theUsualPortNeedNotBeNamed(_ port: Int, _ host: String, _ isTaken: Bool) throws {
        let answers = AnswerBox(provider: try metadata(Self.issuer), path: "/callback")
        answers.listens(at: .ipv4, port)
        let state = try #require(answers.state.unprotectedText())
        let reply = answers.take("/callback?code=c&state=\(state)", host: host)
        #expect(reply == (isTaken ? .signedIn : .notFound))
    }

    /// A page for the arguments of a browser program: it leads on, and only under the name that was made for it.
    @Test func aPageLeadsToTheProvider() async throws {
        let redirect = try await listen()
        let page = redirect.page(
            leadingTo: "\(redirect.redirectURI)?error=access_denied&state=\(try state(redirect))")
        #expect(page.hasPrefix("http://127.0.0.1:") && !page.contains("state"))
        for wrong in ["\(page)x", String(page.dropLast()), page.replacing("/start/", with: "/"), "\(page)?a"]
        {
            #expect(try await get(wrong).status == 404)
        }
        #expect(try await get(page, method: .POST).status == 404)
        #expect(try await get(page, host: "localhost").status == 404)
        async let answer = redirect.answer(within: .seconds(3_600))
        // The client follows the redirect to the listener itself.
        #expect(try await get(page).body.contains("did not sign you in"))
        let told = try await answer
        #expect(throws: OAuthError.accessDenied) { try told.code() }
    }

    /// Another user can read the address of a sign-in in the list of programs, and answer it with another account.
    @Test(.enabled(if: geteuid() == 0)) func anotherUserAnswersNothing() async throws {
        let redirect = try await listen()
        let page = redirect.page(leadingTo: "https://id.example/authorize")
        let query = "?code=forged&state=\(try state(redirect))"
        for target in [
            "/callback\(query)", String(page.dropFirst(redirect.redirectURI.count - "/callback".count)),
        ] {
            let status = try Self.status(
                of: target, at: redirect, as: ["--reuid=65534", "--regid=65534", "--clear-groups"])
            #expect(status == "HTTP/1.1 403 Forbidden", "\(status)")
        }
        #expect(try Self.status(of: "/", at: redirect, as: []) == "HTTP/1.1 404 Not Found")
        async let answer = redirect.answer(within: .seconds(3_600))
        let own = try Self.status(of: "/callback?code=own&state=\(try state(redirect))", at: redirect, as: [])
        #expect(own == "HTTP/1.1 200 OK")
        #expect(try await answer.code() == "own")
    }

    /// The status line of a request that a program with these options of `setpriv` sends.
    private static func status(
        of target: String, at redirect: LoopbackRedirect, as options: [String]
    ) throws -> String {
        let host = redirect.redirectURI.dropFirst("http://".count).dropLast("/callback".count)
        let script = """
            exec 3<>/dev/tcp/\(host.replacing(":", with: "/"))
            printf 'GET %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' '\(target)' '\(host)' >&3
            IFS= read -r line <&3; printf '%s' "${line%$'\\r'}"
            """
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        process.arguments = options + ["/bin/bash", "-c", script]
        process.standardOutput = output
        try process.run()
        let line = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: line, as: UTF8.self)
    }

    /// Lines of the kernel's table of sockets, and what is read in them.
    @Test(arguments: [
        (
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1",
            "1000"
        ),
        (
            "   1: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:0050 01 0:0 00:0 0  33  0 1",
            "33"
        ),
        (
            "   2: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1",
            nil
        ),
        (
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
            nil
        ),
        ("", nil), ("   0: 0100007F:XYZ 00000000:0000 0A 0:0 00:0 0 1000 0 1", nil),
    ])
    func theTableOfSocketsIsRead(_ line: String, _ user: String?) {
        let entry = LoopbackPeer.entry(line[...])
        #expect(entry.map { String($0.user) } == user)
        if entry != nil { #expect(entry?.port == 0x1F90) }
    }

    /// The kernel answers a question for one socket as its table does. A port without a connection has no owner.
    @Test(arguments: [false, true]) func bothWaysNameTheOwner(_ isIPv6: Bool) async throws {
        let host = isIPv6 ? "::1" : "127.0.0.1"
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group).bind(host: host, port: 0).get()
        let there = try #require(listener.localAddress?.port)
        let channel = try await ClientBootstrap(group: group).connect(host: host, port: there).get()
        let here = try #require(channel.localAddress?.port)
        #expect(LoopbackPeer.isOfSameUserByQuestion(here, as: there, isIPv6: isIPv6) == true)
        #expect(LoopbackPeer.isOfSameUserByTable(here, as: there, isIPv6: isIPv6))
        #expect(LoopbackPeer.isOfSameUserByQuestion(here, as: there, isIPv6: !isIPv6) == nil)
        #expect(!LoopbackPeer.isOfSameUserByTable(here, as: there, isIPv6: !isIPv6))
        try await channel.close()
        try await listener.close()
    }

    /// Other lines of a long table are not parsed.
    @Test func onlyLinesWithThePortAreParsed() {
        let port = Array("1F90".utf8)
        for (line, isNamed) in [
            ("0: 0100007F:1F90 00000000:0000 0A", true), ("1: 0100007F:0050 0100007F:1F90 01", true),
            ("2: 0100007F:0050 0100007F:0051 01", false), ("3: 01001F90:0050 0100007F:0051 01", false),
            ("4: 0100007F:1F9", false), ("", false),
        ] {
            #expect(LoopbackPeer.names(port, Array(line.utf8)[...]) == isNamed, "\(line)")
        }
    }

    @Test func theSecondAnswerIsLate() async throws {
        let redirect = try await listen()
        let query = "&state=\(try state(redirect))"
        #expect(try await get("\(redirect.redirectURI)?code=first\(query)").status == 200)
        #expect(try await get("\(redirect.redirectURI)?code=second\(query)").status == 404)
        #expect(try await redirect.answer(within: .seconds(3_600)).code() == "first")
    }

    @Test func refusalsAreTold() async throws {
        for (error, expected) in [
            ("access_denied", OAuthError.accessDenied),
            ("invalid_scope", .authorizationRefused("invalid_scope")),
            ("%3Cscript%3E", .authorizationRefused("unknown_error")),
        ] {
            let redirect = try await listen()
            let page = try await get("\(redirect.redirectURI)?error=\(error)&state=\(try state(redirect))")
            #expect(page.status == 200)
            #expect(page.body.contains("Not signed in"))
            #expect(!page.body.contains("script"))
            #expect(
                await failure { () async throws(OAuthError) in
                    try await redirect.answer(within: .seconds(3_600)).code()
                } == expected)
        }
    }

    /// RFC 9207: the answer of another provider is no answer of this one's, though it has the state.
    @Test func anotherProvidersAnswerEndsIt() async throws {
        for issuer in ["&iss=https%3A%2F%2Fevil.example", ""] {
            let redirect = try await listen(iss: true)
            _ = try await get("\(redirect.redirectURI)?code=c&state=\(try state(redirect))\(issuer)")
            #expect(
                await failure { () async throws(OAuthError) in
                    try await redirect.answer(within: .seconds(3_600))
                }
                    == .wrongIssuer)
        }
        let redirect = try await listen(iss: true)
        let iss = "&iss=https%3A%2F%2Fid.example"
        _ = try await get("\(redirect.redirectURI)?code=c&state=\(try state(redirect))\(iss)")
        #expect(try await redirect.answer(within: .seconds(3_600)).code() == "c")
    }

    @Test func itEndsWithTheTimeOrTheTask() async throws {
        let redirect = try await listen()
        #expect(
            await failure { () async throws(OAuthError) in try await redirect.answer(within: .zero) }
                == .timedOut)
        let other = try await listen()
        let waiting = Task {
            await failure { () async throws(OAuthError) in try await other.answer(within: .seconds(3_600)) }
        }
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
        await #expect(throws: (any Error).self) { try await get(other.redirectURI) }
    }

    /// Bytes that are no HTTP, and a head that never ends, do not keep the browser out.
    @Test func connectionsThatAreNoBrowserAreClosed() async throws {
        let redirect = try await listen()
        let port = try #require(Int(redirect.redirectURI.split(separator: ":")[2].prefix { $0 != "/" }))
        for bytes in [
            "\u{16}\u{03}\u{01}garbage\r\n\r\n", "GET /callback HTTP/9.9\r\n\r\n", "GET\r\n\r\n",
            "GET /callback?\(String(repeating: "x", count: 1 << 20)) HTTP/1.1\r\n\r\n",
            "POST /callback HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ] {
            try await endOfConnection(to: port, sending: bytes)
        }
        let slow = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port).get()
        try await slow.writeAndFlush(ByteBuffer(string: "GET /callback?code="))
        async let answer = redirect.answer(within: .seconds(3_600))
        #expect(try await get("\(redirect.redirectURI)?code=c&state=\(try state(redirect))").status == 200)
        #expect(try await answer.code() == "c")
        try? await slow.close()
    }

    /// Returns when the other end has closed the connection.
    private func endOfConnection(to port: Int, sending bytes: String) async throws {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port).get()
        try? await channel.writeAndFlush(ByteBuffer(string: bytes))
        try? await channel.closeFuture.get()
    }

    @Test func onlyTheLoopbackIsListenedOn() async throws {
        let redirect = try await listen()
        let port = try #require(Int(redirect.redirectURI.split(separator: ":")[2].prefix { $0 != "/" }))
        await #expect(throws: (any Error).self) {
            try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.2", port: port).get()
        }
    }

    @Test(arguments: [
        "http://127.0.0.1callback", "/callback", "http://127.0.0.1/a?b", "http://127.0.0.1/a#b",
        "http://127.0.0.1/a b", "http://127.0.0.1/\u{e4}", "https://127.0.0.1/callback",
        "http://127.0.0.2/callback", "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://[::2]/",
        "http://localhost.example/", "http://127.0.0.1/a/../b", "http://127.0.0.1/a/%2e%2E",
        "http://127.0.0.1/%zz", "http://a@127.0.0.1/", "app:/callback",
    ])
    func invalidRedirectAddressesAreRejected(_ address: String) async throws {
        let provider = try metadata(Self.issuer)
        #expect(
            await failure { () async throws(OAuthError) in
                try await LoopbackRedirect.listen(for: provider, at: address)
            } == .invalid("the redirection address"))
    }

    @Test func aPortThatIsTakenIsTold() async throws {
        let redirect = try await listen()
        let port = try #require(Int(redirect.redirectURI.split(separator: ":")[2].prefix { $0 != "/" }))
        let provider = try metadata(Self.issuer)
        #expect(
            await failure { () async throws(OAuthError) in
                try await LoopbackRedirect.listen(for: provider, at: "http://127.0.0.1:\(port)/")
            } == .cannotListen)
    }
}
#endif
