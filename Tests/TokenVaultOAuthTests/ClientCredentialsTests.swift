#if OAuth
import Foundation
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

@testable import TokenVaultOAuth

/// Tokens of the client itself (RFC 6749 section 4.4), and their renewal.
@Suite(.tags(.provider), .from(.all)) struct ClientCredentialsTests {
    private let secret = ClientAuthentication.clientSecretPost(Secret(utf8: "fake-secret"))

    /// Answers each request with another token.
    private static func server() async throws -> ScriptedServer {
        let count = Counter()
        return try await ScriptedServer { _ in
            .json(#"{"access_token":"fake-\#(count.next())","token_type":"Bearer","expires_in":60}"#)
        }
    }

    /// Counts requests.
    private final class Counter: Sendable {
        private let count = Mutex(0)
        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test func aDueTokenIsRequestedAgain() async throws {
        let server = try await Self.server()
        let clock = TestClock()
        let client = try client(server, authentication: secret, clock: clock)
        let signedIn = try await client.clientCredentials(scopes: ["read", "write"])
        #expect(signedIn.tokens.isOfClient && signedIn.tokens.refreshToken == nil)
        var configuration = TokenManager.Configuration()
        configuration.clock = clock.read
        let storage = InMemoryTokenStorage(service: "s")
        let manager = client.tokenManager(storage: storage, account: "a", configuration: configuration)
        try await manager.updateTokens(signedIn.tokens)
        #expect(try await manager.validAccessToken() == "fake-1")
        #expect(server.asked.count == 1)
        clock.advance(59)
        #expect(try await manager.validAccessToken() == "fake-2")
        // Another manager also renews the expired token.
        clock.advance(3_600)
        let other = client.tokenManager(storage: storage, account: "a", configuration: configuration)
        let tokens = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<100 { group.addTask { try? await other.validAccessToken() } }
            return await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(tokens == ["fake-3"] && server.asked.count == 3)
        #expect(try await other.currentTokens()?.isOfClient == true)
        for asked in server.asked {
            #expect(
                asked.form == [
                    "grant_type": "client_credentials", "scope": "read write", "client_id": "fake-client",
                    "client_secret": "fake-secret",
                ])
        }
    }

    /// No refresh token was refused, so the client may ask again.
    @Test func aRefusalEndsNoSession() async throws {
        let server = try await ScriptedServer(
            always: .json(#"{"error":"invalid_grant"}"#, status: 400))
        let clock = TestClock()
        let client = try client(server, authentication: secret, clock: clock)
        var configuration = TokenManager.Configuration()
        configuration.clock = clock.read
        let manager = client.tokenManager(
            storage: InMemoryTokenStorage(service: "s"), account: "a", configuration: configuration)
        var tokens = TokenInfo(accessToken: "fake", accessTokenExpiry: clock.now.addingTimeInterval(-1))
        tokens.isOfClient = true
        try await manager.updateTokens(tokens)
        let error = await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        guard case .refreshFailed(let failure, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.kind == .refused("invalid_grant"))
        #expect(try await manager.currentTokens() != nil)
    }
}
#endif
