import HookedStorage
import Testing
import TokenVault

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What becomes of tokens between the server's answer and the disk.
@Suite struct SavingTests {
    private let scene = TestFixture()

    /// A clock that is not at a whole second, as clocks are.
    private func sceneAtOddTimes() -> TestFixture {
        scene.clock.advance(by: 0.123_456_789)
        return scene
    }

    /// A storage that stores the first answer's tokens, does `then`, and does not tell: it notes that in `lost`.
    private func storage(
        _ scene: TestFixture, _ server: RotatingServer, _ lost: Notes<Int>,
        then: @escaping @Sendable () -> Void = {}
    ) -> HookedStorage {
        HookedStorage(base: scene.storage) { call, moment, _ throws(TokenStorageError) in
            guard call == .commit, moment == .after, server.requests == 1, lost.all.isEmpty else { return }
            lost.add(1)
            then()
            throw TokenStorageError(.outcomeUnknown, operation: "store", backend: "agent")
        }
    }

    @Test func aSaveThatMayHaveHappenedIsLookedFor() async throws {
        let scene = sceneAtOddTimes()
        let server = RotatingServer()
        let lost = Notes<Int>()
        let storage = storage(scene, server, lost)
        let manager = scene.manager(server, storage: storage)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(lost.all == [1])
        #expect(server.revoked.isEmpty)
        #expect(server.requests == 1)
    }

    @Test func aSaveThatMayHaveHappenedBeforeALockIsLookedForAfterIt() async throws {
        let scene = sceneAtOddTimes()
        let server = RotatingServer()
        let lost = Notes<Int>()
        let storage = storage(scene, server, lost) { scene.vault.setLockState(.locked) }
        let manager = scene.manager(server, storage: storage)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        scene.vault.setLockState(.unlocked)
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.revoked.isEmpty)
        #expect(server.requests == 1)
    }

    @Test func aNewLabelDuringTheRequestDoesNotMatter() async throws {
        let scene = scene
        let server = RotatingServer { _ in
            _ = try? await scene.storage.commit([
                .update("auth/session/work", details: TokenDetails(label: "Work"))
            ])
        }
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.revoked.isEmpty)
        #expect(try #require(await scene.record()).contains("refresh-1"))
        #expect(try await scene.storage.metadata(for: "auth/session/work")?.label == "Work")
    }

    @Test(arguments: [Double.infinity, .nan, -.infinity, -1, 0, 9.3e18, 1e300])
    func aLifetimeThatIsNoneLastsUntilTheServerSaysOtherwise(_ lifetime: Double) async throws {
        let scene = scene
        let requests = Notes<Int>()
        let manager = TokenManager(
            storage: scene.storage, account: "work", configuration: scene.configuration
        ) { _ in
            requests.add(1)
            return TokenRefreshResponse(
                accessToken: "access-\(requests.all.count)", expiresIn: lifetime, refreshToken: "refresh",
                refreshTokenExpiresIn: lifetime, serverDate: Date(timeIntervalSince1970: lifetime))
        }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        for _ in 0..<3 { #expect(try await manager.validAccessToken() == "access-1") }
        #expect(requests.all.count == 1)
        let tokens = try #require(await manager.currentTokens())
        #expect(!"\(tokens)".isEmpty)
        // Another start of the app finds the same tokens.
        #expect(try await scene.manager(RotatingServer()).currentTokens() == tokens)
    }

    @Test func anAnswerThatIsTooMuchToStoreEndsNothing() async throws {
        let scene = scene
        let requests = Notes<Int>()
        let long = String(repeating: "x", count: 2 << 20)
        let manager = TokenManager(
            storage: scene.storage, account: "work", configuration: scene.configuration
        ) { _ in
            requests.add(1)
            return TokenRefreshResponse(
                accessToken: requests.all.count == 1 ? long : "access-1", expiresIn: 3_600, idToken: long,
                tokenType: long, scope: long)
        }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        // The server has accepted the token, so this call does not send it again.
        await #expect {
            try await manager.validAccessToken()
        } throws: { error in
            guard case TokenError.refreshFailed(let failure, _) = error else { return false }
            return failure.kind == .unusable(200)
        }
        #expect(requests.all.count == 1)
        #expect(try #require(await scene.record()).contains("intent"))
        // The next call may try the token again, in case the server accepts it twice.
        scene.clock.advance(by: 2)
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(requests.all.count == 2)
    }

    @Test func datesThatAreNoneDoNotCrash() throws {
        for seconds in [Double.infinity, -.infinity, .nan, 1e300, -1e300] {
            var tokens = TokenInfo(
                accessToken: "a", accessTokenExpiry: Date(timeIntervalSince1970: seconds),
                refreshTokenExpiry: Date(timeIntervalSince1970: seconds))
            tokens.accessTokenExpiry = Date(timeIntervalSince1970: seconds)
            #expect(try JSONDecoder().decode(TokenInfo.self, from: JSONEncoder().encode(tokens)) == tokens)
            #expect(!"\(tokens)".isEmpty)
        }
        var configuration = TokenManager.Configuration()
        configuration.attempts = .max
        configuration.refreshTimeout = .seconds(Int64.max)
        configuration.leaseTimeout = .seconds(Int64.max)
        #expect(configuration.flightLimit > .zero)
        #expect(configuration.attemptLimit == 100)
    }
}
