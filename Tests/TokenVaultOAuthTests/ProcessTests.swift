#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// Many processes with one vault and one session. The provider ends the session of a client that uses a
/// refresh token twice.
@Suite(.tags(.provider), .from(.all)) struct ProcessTests {
    @Test func fiftyProcessesRefreshOnce() async throws {
        let scene = try await WorkerScene()
        let signedIn = try await scene.provider.signIn(scene.client)
        let manager = scene.manager()
        try await manager.updateTokens(signedIn.tokens.expired)
        let workers = try (0..<50).map { _ in try scene.start() }
        let ends = try workers.map { try $0.end() }
        let tokens = Set(ends.map(\.token))
        #expect(tokens.count == 1)
        let token = try #require(tokens.first ?? nil, "\(ends[0].lines)")
        #expect(token != signedIn.tokens.accessToken)
        #expect(try scene.requests() == 1)
        // The session continues in this process too.
        #expect(try await manager.validAccessToken() == token)
        #expect(try scene.requests() == 1)
        try await manager.refreshTokens()
        #expect(try scene.requests() == 2)
    }
}
#endif
