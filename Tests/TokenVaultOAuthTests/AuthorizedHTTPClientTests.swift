#if OAuth
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// Where a token goes, and above all where not.
@Suite(.tags(.provider), .from(.all)) struct AuthorizedHTTPClientTests {
    /// A manager with a session whose tokens are numbered: each refresh gives the next.
    private func manager() async throws -> TokenManager {
        let number = Mutex(1)
        let manager = TokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a") { _ in
            let next = number.withLock { number -> Int in
                number += 1
                return number
            }
            return TokenRefreshResponse(
                accessToken: "fake-\(next)", expiresIn: 3_600, refreshToken: "fake-refresh-\(next)")
        }
        try await manager.updateTokens(
            TokenInfo(
                accessToken: "fake-1", refreshToken: "fake-refresh-1",
                accessTokenExpiry: Date().addingTimeInterval(3_600)))
        return manager
    }

    private func client(
        _ servers: [ScriptedServer], header: String = "Authorization", redirects: Int = 5
    ) async throws -> AuthorizedHTTPClient {
        let origins = servers.map { RequestOrigin(scheme: "http", host: "127.0.0.1", port: $0.port) }
        return AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(
                manager: try await manager(), allowedOrigins: Set(origins), headerName: header),
            maximumRedirects: redirects)
    }

    /// A server that takes a token or refuses.
    private func resource(taking token: String) async throws -> ScriptedServer {
        try await ScriptedServer { asked in
            asked.headers["Authorization"] == ["Bearer \(token)"]
                ? .init(body: asked.body) : .init(status: 401)
        }
    }

    private func redirecting(to address: String, status: Int = 302) async throws -> ScriptedServer {
        try await ScriptedServer(always: .init(status: status, headers: [("Location", address)]))
    }

    /// `localhost` is this machine, whatever the configuration says of the name.
    @Test func localhostIsThisMachine() async throws {
        let server = try await resource(taking: "fake-1")
        var configuration = HTTPClient.Configuration()
        configuration.dnsOverride = ["localhost": "192.0.2.1"]
        let origin = RequestOrigin(scheme: "http", host: "localhost", port: server.port)
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: try await manager(), allowedOrigins: [origin]),
            configuration: configuration)
        let request = HTTPClientRequest(url: "http://localhost:\(server.port)/x")
        #expect(try await client.execute(request, timeout: .seconds(60)).status == .ok)
        #expect(server.asked.map(\.path) == ["/x"])
    }

    /// An API that rejects every token, or needs another scope, does not cause a refresh for each request.
    @Test(arguments: ["", #"Bearer error="insufficient_scope""#])
    func anAPIThatRefusesEachTokenCausesOneRefresh(_ challenge: String) async throws {
        let server = try await ScriptedServer(
            always: .init(status: 401, headers: challenge.isEmpty ? [] : [("WWW-Authenticate", challenge)]))
        let client = try await client([server])
        for _ in 0..<10 {
            let response = try await client.execute(HTTPClientRequest(url: "\(server.origin)/x"))
            #expect(response.status == .unauthorized)
        }
        let tokens = Set(server.asked.flatMap { $0.headers["Authorization"] })
        #expect(tokens.count == (challenge.isEmpty ? 2 : 1))
        #expect(server.asked.count == (challenge.isEmpty ? 11 : 10))
    }

    @Test func aRequestCarriesTheToken() async throws {
        let server = try await resource(taking: "fake-1")
        let client = try await client([server])
        let response = try await client.execute(HTTPClientRequest(url: "\(server.origin)/x"))
        #expect(response.status == .ok)
        #expect(server.asked.count == 1)
    }

    /// AsyncHTTPClient would end the process. What the app asked of new connections is done as well.
    @Test func aStatusThatIsNoneIsAnError() async throws {
        let server = try await RawServer(always: "HTTP/1.1 042 X\r\nContent-Length: 0\r\n\r\n")
        let connections = Mutex(0)
        var configuration = HTTPClient.Configuration()
        configuration.http1_1ConnectionDebugInitializer = { channel in
            connections.withLock { $0 += 1 }
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(
                manager: try await manager(),
                allowedOrigins: [RequestOrigin(scheme: "http", host: "127.0.0.1", port: server.port)]),
            configuration: configuration)
        await #expect(throws: ImpossibleStatus.self) {
            try await client.execute(HTTPClientRequest(url: server.origin))
        }
        #expect(connections.withLock { $0 } == 1)
    }

    @Test func aRefusedTokenIsRenewedOnce() async throws {
        let server = try await resource(taking: "fake-2")
        let client = try await client([server])
        var request = HTTPClientRequest(url: server.origin)
        request.method = .POST
        let response = try await client.execute(request, body: ByteBuffer(string: "kept"))
        #expect(response.status == .ok)
        #expect(String(buffer: try await response.body.collect(upTo: 100)) == "kept")
        #expect(server.asked.map(\.body) == ["kept", "kept"])
        let closed = try await resource(taking: "never")
        let refused = try await self.client([closed]).execute(HTTPClientRequest(url: closed.origin))
        #expect(refused.status == .unauthorized)
        #expect(closed.asked.count == 2)
    }

    @Test func aStreamIsNotSentTwice() async throws {
        let server = try await resource(taking: "fake-2")
        var request = HTTPClientRequest(url: server.origin)
        request.method = .POST
        request.body = .stream(
            AsyncStream { stream in
                stream.yield(ByteBuffer(string: "once"))
                stream.finish()
            }, length: .unknown)
        let response = try await client([server]).execute(request)
        #expect(response.status == .unauthorized)
        #expect(server.asked.map(\.body) == ["once"])
    }

    @Test func anotherOriginGetsNoToken() async throws {
        let allowed = try await resource(taking: "fake-1")
        let other = try await ScriptedServer(always: .init())
        let client = try await client([allowed])
        _ = try await client.execute(HTTPClientRequest(url: other.origin))
        #expect(other.asked[0].headers["Authorization"].isEmpty)
    }

    @Test(arguments: ["Authorization", "X-Fake-Token"], [301, 302, 303, 307, 308])
    func aRedirectionToAnotherOriginLosesTheToken(_ header: String, _ status: Int) async throws {
        let other = try await ScriptedServer(always: .init(body: "there"))
        let server = try await redirecting(to: "\(other.origin)/y?z=1", status: status)
        let client = try await client([server], header: header)
        var request = HTTPClientRequest(url: server.origin)
        request.headers.add(name: "Cookie", value: "fake=1")
        request.headers.add(name: "X-Kept", value: "yes")
        let response = try await client.execute(request)
        #expect(response.status == .ok)
        #expect(server.asked[0].headers[header] == ["Bearer fake-1"])
        #expect(server.asked[0].headers["Cookie"] == ["fake=1"])
        let there = try #require(other.asked.first)
        #expect(there.target == "/y?z=1")
        #expect(there.headers[header].isEmpty)
        #expect(there.headers["Cookie"].isEmpty)
        #expect(there.headers["X-Kept"] == ["yes"])
        #expect(there.headers["Host"] == ["127.0.0.1:\(other.port)"])
    }

    @Test func aRedirectionToAnAllowedOriginIsAuthorizedAnew() async throws {
        let other = try await resource(taking: "fake-2")
        let server = try await redirecting(to: other.origin)
        let client = try await client([server, other])
        #expect(try await client.execute(HTTPClientRequest(url: server.origin)).status == .ok)
        #expect(other.asked.map { $0.headers["Authorization"] } == [["Bearer fake-1"], ["Bearer fake-2"]])
    }

    /// One for the request, not one for each of its steps.
    @Test func thereIsOneNewTryHoweverManyRedirections() async throws {
        let other = try await ScriptedServer(always: .init(status: 401))
        let server = try await ScriptedServer { [origin = other.origin] asked in
            asked.headers["Authorization"] == ["Bearer fake-2"]
                ? .init(status: 302, headers: [("Location", origin)]) : .init(status: 401)
        }
        let client = try await client([server, other])
        #expect(try await client.execute(HTTPClientRequest(url: server.origin)).status == .unauthorized)
        #expect(server.asked.count == 2)
        #expect(other.asked.map { $0.headers["Authorization"] } == [["Bearer fake-2"]])
    }

    @Test(arguments: [
        (301, "GET", ""), (302, "GET", ""), (303, "GET", ""), (307, "POST", "kept"), (308, "POST", "kept"),
    ])
    func aRedirectionKeepsTheBodyOrDoesNot(_ status: Int, _ method: String, _ body: String) async throws {
        let server = try await ScriptedServer { asked in
            asked.path == "/to" ? .init() : .init(status: status, headers: [("Location", "to")])
        }
        var request = HTTPClientRequest(url: "\(server.origin)/from")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "text/plain")
        _ = try await client([server]).execute(request, body: ByteBuffer(string: "kept"))
        #expect(server.asked.map(\.target) == ["/from", "/to"])
        #expect(server.asked[1].method == method)
        #expect(server.asked[1].body == body)
        #expect(server.asked[1].headers["Content-Type"] == (method == "POST" ? ["text/plain"] : []))
    }

    @Test func redirectionsHaveAnEnd() async throws {
        let server = try await ScriptedServer { asked in
            .init(status: 302, headers: [("Location", "\(asked.path)x")])
        }
        let response = try await client([server], redirects: 3).execute(
            HTTPClientRequest(url: "\(server.origin)/"))
        #expect(response.status == .found)
        #expect(server.asked.map(\.target) == ["/", "/x", "/xx", "/xxx"])
    }

    @Test(arguments: ["ftp://127.0.0.1/", "javascript:x", "https://user:pw@127.0.0.1/", ""])
    func redirectionsToNowhereAreTheAnswer(_ address: String) async throws {
        let server = try await redirecting(to: address)
        let response = try await client([server], redirects: 1).execute(HTTPClientRequest(url: server.origin))
        #expect(response.status == .found)
    }

    @Test func encryptionIsNotLeft() throws {
        let response = HTTPClientResponse(
            version: .http1_1, status: .found, headers: ["Location": "http://127.0.0.1/"])
        let request = OutgoingRequest(HTTPClientRequest(url: "https://127.0.0.1/"), body: nil)
        #expect(request.redirected(by: response, without: "Authorization") == nil)
        let clear = OutgoingRequest(HTTPClientRequest(url: "http://127.0.0.1/x"), body: nil)
        #expect(clear.redirected(by: response, without: "Authorization") != nil)
    }
}
#endif
