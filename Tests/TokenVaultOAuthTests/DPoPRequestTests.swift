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

/// Requests to APIs with a token that is bound to a key (RFC 9449 section 7).
@Suite(.tags(.provider), .from(.all)) struct DPoPRequestTests {
    private let key = DPoPKey()

    /// A client whose session has the bound token `fake-1`, and the number of refreshes.
    private func client(
        _ servers: [ScriptedServer]
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
        let origins = servers.map { RequestOrigin(scheme: "http", host: "127.0.0.1", port: $0.port) }
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: Set(origins)))
        return (client, { count.value })
    }

    private final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    private static func demanding(_ nonce: String) -> ScriptedServer.Reply {
        .init(
            status: 401,
            headers: [("WWW-Authenticate", #"DPoP error="use_dpop_nonce""#), ("DPoP-Nonce", nonce)])
    }

    @Test func eachRequestHasAProofOfItsOwn() async throws {
        let server = try await ScriptedServer(always: .init())
        let (client, _) = try await client([server])
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

    /// RFC 9449 section 9: no new token, and the nonce stays for the next request.
    @Test func aNonceThatAnAPIDemandsIsSent() async throws {
        let server = try await ScriptedServer { asked in
            asked.proof?.nonce == "n-1"
                ? .init(body: asked.body) : Self.demanding("n-1")
        }
        let (client, refreshes) = try await client([server])
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
        let (client, refreshes) = try await client([server])
        #expect(try await client.execute(HTTPClientRequest(url: server.origin)).status == .unauthorized)
        #expect(server.asked.count == 2 && refreshes() == 0)
    }

    /// A refused token is renewed, and the new one is proved with the same key.
    @Test func aRefusedTokenIsRenewed() async throws {
        let server = try await ScriptedServer { asked in
            asked.headers["Authorization"] == ["DPoP fake-2"] ? .init() : .init(status: 401)
        }
        let (client, refreshes) = try await client([server])
        #expect(try await client.execute(HTTPClientRequest(url: server.origin)).status == .ok)
        let proof = try #require(server.asked.last?.proof)
        #expect(proof.tokenHash == ReadProof.hash("fake-2") && proof.thumbprint == key.thumbprint)
        #expect(refreshes() == 1)
    }

    /// Another origin gets neither the token nor a proof; the allowed one a proof of its own address.
    @Test func aRedirectTakesNoProofAlong() async throws {
        let other = try await ScriptedServer(always: .init())
        let server = try await ScriptedServer { [port = other.port] asked in
            switch asked.path {
            case "/away":
                .init(status: 302, headers: [("Location", "http://127.0.0.1:\(port)/x")])
            case "/here": .init(status: 302, headers: [("Location", "/there")])
            default: .init()
            }
        }
        let (client, _) = try await client([server])
        #expect(
            try await client.execute(HTTPClientRequest(url: "\(server.origin)/away")).status == .ok)
        let strange = try #require(other.asked.first)
        #expect(strange.headers["DPoP"].isEmpty && strange.headers["Authorization"].isEmpty)
        #expect(
            try await client.execute(HTTPClientRequest(url: "\(server.origin)/here")).status == .ok)
        let proof = try #require(server.asked.last?.proof)
        #expect(proof.url == "\(server.origin)/there")
    }
}
#endif
