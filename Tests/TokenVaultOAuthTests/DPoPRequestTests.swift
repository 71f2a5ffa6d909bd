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

/// Requests to APIs with a token that is bound to a key (RFC 9449 section 7).
@Suite(.tags(.provider), .from(.all)) struct DPoPRequestTests {
    private let key = DPoPKey()

    /// Returns a client whose session has the bound token `fake-1`, and a function that counts the refreshes.
    private func client(
        _ server: ScriptedServer
    ) async throws -> (client: AuthorizedHTTPClient, refreshes: @Sendable () -> Int) {
        let count = Counter()
        let manager = TokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a") { _ in
            TokenRefreshResponse(
                accessToken: "fake-\(count.next() + 1)", expiresIn: 3_600, refreshToken: "fake-refresh",
                tokenType: "DPoP")
        }
        var tokens = TokenInfo(
            accessToken: "fake-1", refreshToken: "fake-refresh", tokenType: "DPoP",
            accessTokenExpiry: Date().addingTimeInterval(3_600))
        tokens.dpopKey = key.pem
        try await manager.updateTokens(tokens)
        let origin = RequestOrigin(scheme: "http", host: "127.0.0.1", port: server.port)
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [origin]))
        return (client, { count.value })
    }

    private static func demanding(_ nonce: String) -> ScriptedServer.Reply {
        .init(
            status: 401,
            headers: [("WWW-Authenticate", #"DPoP error="use_dpop_nonce""#), ("DPoP-Nonce", nonce)])
    }

    @Test func eachRequestHasAProofOfItsOwn() async throws {
        let server = try await ScriptedServer(always: .init())
        let (client, _) = try await client(server)
        for _ in 0..<2 {
            var request = HTTPClientRequest(url: "\(server.origin)/items?page=2")
            request.method = .PUT
            #expect(try await client.execute(request).status == .ok)
        }
        #expect(server.asked.map { $0.headers["Authorization"] } == [["DPoP fake-1"], ["DPoP fake-1"]])
        let proofs = try server.asked.map { try #require($0.proof) }
        for proof in proofs {
            #expect(proof.method == "PUT" && proof.url == "\(server.origin)/items")
            #expect(proof.tokenHash == ReadProof.hash("fake-1") && proof.thumbprint == key.thumbprint)
        }
        #expect(proofs[0].identifier != proofs[1].identifier)
    }

    /// RFC 9449 section 9: the token is not refreshed, and the next request uses the same nonce.
    @Test func aNonceThatAnAPIDemandsIsSent() async throws {
        let server = try await ScriptedServer { asked in
            asked.proof?.nonce == "n-1"
                ? .init(body: asked.body) : Self.demanding("n-1")
        }
        let (client, refreshes) = try await client(server)
        for _ in 0..<2 {
            var request = HTTPClientRequest(url: server.origin)
            request.method = .POST
            let response = try await client.execute(request, body: ByteBuffer(string: "kept"))
            #expect(String(buffer: try await response.body.collect(upTo: 100)) == "kept")
        }
        #expect(server.asked.count == 3 && refreshes() == 0)
    }

    @Test func anAPIThatAcceptsNoNonceIsAskedTwice() async throws {
        let server = try await ScriptedServer { asked in
            Self.demanding("n-\(asked.proof?.identifier ?? "")")
        }
        let (client, refreshes) = try await client(server)
        #expect(try await client.execute(HTTPClientRequest(url: server.origin)).status == .unauthorized)
        #expect(server.asked.count == 2 && refreshes() == 0)
    }

    /// A 401 causes a refresh. The proof of the new token has the same key.
    @Test func aRejectedTokenIsRefreshed() async throws {
        let server = try await ScriptedServer { asked in
            asked.headers["Authorization"] == ["DPoP fake-2"] ? .init() : .init(status: 401)
        }
        let (client, refreshes) = try await client(server)
        #expect(try await client.execute(HTTPClientRequest(url: server.origin)).status == .ok)
        let proof = try #require(server.asked.last?.proof)
        #expect(proof.tokenHash == ReadProof.hash("fake-2") && proof.thumbprint == key.thumbprint)
        #expect(refreshes() == 1)
    }

    /// Another origin gets neither the token nor a proof. A redirect within an allowed origin gets a proof of the new
    /// address.
    @Test func aRedirectGetsNoEarlierProof() async throws {
        let other = try await ScriptedServer(always: .init())
        let server = try await ScriptedServer { [port = other.port] asked in
            switch asked.path {
            case "/away":
                .init(status: 302, headers: [("Location", "http://127.0.0.1:\(port)/x")])
            case "/here": .init(status: 302, headers: [("Location", "/there")])
            default: .init()
            }
        }
        let (client, _) = try await client(server)
        #expect(
            try await client.execute(HTTPClientRequest(url: "\(server.origin)/away")).status == .ok)
        let foreign = try #require(other.asked.first)
        #expect(foreign.headers["DPoP"].isEmpty && foreign.headers["Authorization"].isEmpty)
        #expect(
            try await client.execute(HTTPClientRequest(url: "\(server.origin)/here")).status == .ok)
        let proof = try #require(server.asked.last?.proof)
        #expect(proof.url == "\(server.origin)/there")
    }

    /// The clock or the address is wrong, which no refresh repairs.
    @Test(arguments: ["invalid_dpop_proof", "use_dpop_nonce"])
    func aRefusedProofCausesNoRefresh(_ error: String) async throws {
        let server = try await ScriptedServer(
            always: .init(status: 401, headers: [("WWW-Authenticate", "DPoP error=\"\(error)\"")]))
        let (client, refreshes) = try await client(server)
        #expect(try await client.execute(HTTPClientRequest(url: server.origin)).status == .unauthorized)
        #expect(server.asked.count == 1 && refreshes() == 0)
    }

    /// A body that can be read once is not sent again. The next request has the nonce.
    @Test func aStreamIsNotSentTwice() async throws {
        let server = try await ScriptedServer { asked in
            asked.proof?.nonce == "n-1" ? .init(body: asked.body) : Self.demanding("n-1")
        }
        let (client, refreshes) = try await client(server)
        func send() async throws -> HTTPClientResponse {
            var request = HTTPClientRequest(url: server.origin)
            request.method = .POST
            let parts = AsyncStream<ByteBuffer> { stream in
                stream.yield(ByteBuffer(string: "once"))
                stream.finish()
            }
            request.body = .stream(parts, length: .known(Int64(4)))
            return try await client.execute(request)
        }
        #expect(try await send().status == .unauthorized)
        #expect(server.asked.count == 1 && refreshes() == 0)
        #expect(String(buffer: try await send().body.collect(upTo: 100)) == "once")
        #expect(server.asked.count == 2)
    }

    /// The demand for a nonce has no end, and the request is repeated without it.
    @Test func anEndlessDemandIsNotReadToItsEnd() async throws {
        let server = try await ScriptedServer { asked in
            guard asked.proof?.nonce == nil else { return .init() }
            var reply = Self.demanding("n-1")
            reply.stall = .inBody
            return reply
        }
        let (client, _) = try await client(server)
        let response = try await client.execute(
            HTTPClientRequest(url: server.origin), timeout: .seconds(3_600))
        #expect(response.status == .ok && server.asked.count == 2)
    }

    /// After a new sign-in without a key, the user has a bearer token. The next step has no proof of the
    /// earlier token.
    @Test func aBearerTokenHasNoProof() throws {
        var step = OutgoingRequest(HTTPClientRequest(url: "https://api.example.com/"), body: nil)
        step.setHeader("DPoP", to: "of the app")
        step.setProof(nil)
        #expect(step.request.headers["DPoP"] == ["of the app"])
        step.setProof("fake")
        #expect(step.request.headers["DPoP"] == ["fake"])
        step.setProof(nil)
        #expect(step.request.headers["DPoP"].isEmpty)
    }

    /// A damaged key is an error, not a request without a proof.
    @Test func aDamagedKeySendsNothing() async throws {
        let server = try await ScriptedServer(always: .init())
        let manager = TokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a") { _ in
            throw RefreshFailure(.notSent)
        }
        var tokens = TokenInfo(accessToken: "fake-1", tokenType: "DPoP")
        tokens.dpopKey = Secret(utf8: "damaged")
        try await manager.updateTokens(tokens)
        let origin = RequestOrigin(scheme: "http", host: "127.0.0.1", port: server.port)
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [origin]))
        await #expect(throws: OAuthError.invalid("the session's key")) {
            try await client.execute(HTTPClientRequest(url: server.origin))
        }
        #expect(server.asked.isEmpty)
    }
}
#endif
