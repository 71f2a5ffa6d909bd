import HookedStorage
import Testing
import TokenVault

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

@Suite struct RefreshTests {
    private let scene = TestFixture()

    @Test func tenThousandTasksWithAnExpiredTokenAreOneRefresh() async throws {
        let gate = Gate()
        let server = RotatingServer { _ in await gate.pass() }
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10_000 { group.addTask { try await manager.validAccessToken() } }
            group.addTask {
                gate.open()
                return "access-1"
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens == ["access-1"])
        #expect(server.requests == 1)
        // A caller that looked just before the end may begin another operation, which finds the token. One
        // operation per caller would mean that none was shared.
        #expect(manager.coordinator.operationsSoFar < 100)
    }

    @Test func aTokenThatIsGoodIsNeitherReadNorRenewed() async throws {
        let server = RotatingServer()
        let reads = Notes<Int>()
        let storage = HookedStorage(base: scene.storage) { call, moment, _ in
            if call == .item, moment == .before { reads.add(1) }
        }
        let manager = scene.manager(server, storage: storage)
        try await manager.updateTokens(scene.tokens())
        for _ in 0..<10 { #expect(try await manager.validAccessToken() == "access-0") }
        #expect(reads.all.isEmpty)
        #expect(server.requests == 0)
    }

    @Test func aTokenIsRenewedBeforeItsEndByTheBuffer() async throws {
        let server = RotatingServer()
        let manager = scene.manager(server) { $0.accessTokenRefreshBuffer = .seconds(100) }
        try await manager.updateTokens(scene.tokens(goodFor: 1_000))
        scene.clock.advance(by: 899)
        #expect(try await manager.validAccessToken() == "access-0")
        scene.clock.advance(by: 1)
        #expect(try await manager.validAccessToken() == "access-1")
    }

    @Test func aShortLivedTokenIsNotRenewedByEveryCall() async throws {
        let server = RotatingServer(lifetime: 30)
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: 30))
        for _ in 0..<30 {
            _ = try await manager.validAccessToken()
            scene.clock.advance(by: 1)
        }
        #expect(server.requests == 1)
    }

    @Test func theIntentIsStoredBeforeTheRequestAndGoneAfterIt() async throws {
        let scene = scene
        let seen = Notes<String?>()
        let server = RotatingServer { _ in seen.add(try? await scene.record()) }
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        #expect(try #require(await scene.record()).contains("intent") == false)
        _ = try await manager.validAccessToken()
        let during = try #require(seen.all.first ?? nil)
        #expect(during.contains("intent") && during.contains("refresh-0"))
        let after = try #require(await scene.record())
        #expect(!after.contains("intent") && after.contains("refresh-1"))
    }

    @Test func nobodySeesTokensThatAreNotStored() async throws {
        let server = RotatingServer()
        let early = Notes<Bool>()
        let place = Place()
        let storage = HookedStorage(base: scene.storage) { call, moment, _ in
            guard call == .commit, moment == .before, server.requests == 1 else { return }
            early.add(place.manager?.board.snapshot.session?.record.tokens.accessToken == "access-1")
        }
        let manager = scene.manager(server, storage: storage)
        place.manager = manager
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        _ = try await manager.validAccessToken()
        #expect(early.all == [false])
    }

    @Test func tokensThatCouldNotBeStoredAreKeptAndStoredByTheNextCall() async throws {
        let scene = scene
        let server = RotatingServer { _ in scene.vault.setLockState(.locked) }
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect { try await manager.validAccessToken() } throws: { error in
            if case TokenError.notSaved(let reason) = error { reason.code == .locked } else { false }
        }
        scene.vault.setLockState(.unlocked)
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.requests == 1)
        #expect(try #require(await scene.record()).contains("refresh-1"))
    }

    @Test func whatTheServerRefusesForTheClientsSakeLeavesTheSession() async throws {
        let server = RotatingServer(answers: [.failure(RefreshFailure(.refused("invalid_client")))])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect { try await manager.validAccessToken() } throws: { error in
            if case TokenError.refreshFailed(let failure, _) = error {
                failure.kind == .refused("invalid_client")
            } else {
                false
            }
        }
        #expect(server.requests == 1)
        // The next call waits, because no refusal of a server may cause requests in a loop.
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(scene.pauses.all.count == 1)
    }

    @Test func anInvalidGrantEndsTheSession() async throws {
        let server = RotatingServer(answers: [.failure(RefreshFailure(.invalidGrant))])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.sessionExpired) { try await manager.validAccessToken() }
        #expect(try await scene.record() == nil)
        await #expect(throws: TokenError.tokenNotFound) { try await manager.validAccessToken() }
        #expect(server.requests == 1)
    }

    /// Another manager sent the same token before, got the same answer, and ended the session.
    @Test func anInvalidGrantForASessionThatIsGoneEndsIt() async throws {
        let other = scene.manager(RotatingServer())
        let server = RotatingServer(answers: [.failure(RefreshFailure(.invalidGrant))]) { _ in
            _ = try? await other.clearTokens()
        }
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.sessionExpired) { try await manager.validAccessToken() }
        #expect(await manager.authState() == .signedOut)
        #expect(server.requests == 1)
    }

    @Test func anInvalidGrantForAnOldTokenLeavesTheNewerSession() async throws {
        let scene = scene
        let other = scene.manager(RotatingServer())
        let server = RotatingServer(answers: [.failure(RefreshFailure(.invalidGrant))]) { _ in
            try? await other.updateTokens(
                TokenInfo(accessToken: "newer", accessTokenExpiry: scene.clock.now.addingTimeInterval(3_600)))
        }
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.sessionChanged) { try await manager.validAccessToken() }
        #expect(try await manager.validAccessToken() == "newer")
        #expect(try await other.validAccessToken() == "newer")
    }

    @Test func withoutARefreshTokenTheEndIsTheEnd() async throws {
        let manager = scene.manager(RotatingServer())
        try await manager.updateTokens(scene.tokens(goodFor: -1, refresh: nil))
        await #expect(throws: TokenError.refreshTokenMissing) { try await manager.validAccessToken() }
        #expect(try await manager.isAuthenticated() == false)
    }

    @Test func anExpiredRefreshTokenIsNotSent() async throws {
        let server = RotatingServer()
        let manager = scene.manager(server) { $0.refreshTokenBuffer = .seconds(10) }
        var tokens = scene.tokens(goodFor: -1)
        tokens.refreshTokenExpiry = scene.clock.now.addingTimeInterval(9)
        try await manager.updateTokens(tokens)
        await #expect(throws: TokenError.refreshTokenExpired) { try await manager.validAccessToken() }
        #expect(server.requests == 0)
    }

    /// What this machine reckons is no reason not to ask: providers say 0 for a token that does not end.
    @Test func aRefreshTokenThatSeemsToBeOverIsSent() async throws {
        let server = RotatingServer()
        let manager = scene.manager(server)
        var tokens = scene.tokens(goodFor: -1)
        tokens.refreshTokenExpiry = scene.clock.now.addingTimeInterval(-3_600)
        try await manager.updateTokens(tokens)
        #expect(try await manager.validAccessToken() == "access-1")
    }

    /// Tokens that were got in the future show that the clock was ahead then, and nothing of when they end.
    @Test(arguments: [0.0, 5, 6, 3_600])
    func tokensOfAClockThatWasAheadAreDue(_ seconds: Double) async throws {
        let server = RotatingServer()
        let manager = scene.manager(server)
        scene.clock.advance(by: seconds)
        try await manager.updateTokens(scene.tokens(goodFor: 3_600))
        scene.clock.advance(by: -seconds)
        let isDue = seconds > 5
        // The rule holds in the program that got the tokens, and in another one.
        let known = try StoredToken.look(
            for: "work", in: scene.storage.blocking, configuration: scene.configuration)
        #expect(known.isFresh == !isDue)
        #expect(try await manager.validAccessToken() == (isDue ? "access-1" : "access-0"))
        #expect(try await scene.manager(server).validAccessToken() == (isDue ? "access-1" : "access-0"))
        #expect(server.requests == (isDue ? 1 : 0))
    }

    /// Without anything to renew them with there is nothing better.
    @Test func tokensOfAClockThatWasAheadAreUsedWhereThereAreNoOthers() async throws {
        let manager = scene.manager(RotatingServer())
        scene.clock.advance(by: 3_600)
        try await manager.updateTokens(scene.tokens(goodFor: 3_600, refresh: nil))
        scene.clock.advance(by: -3_600)
        #expect(try await manager.validAccessToken() == "access-0")
    }

    @Test func aTokenThatNoHeaderCanCarryIsRefused() async throws {
        let manager = scene.manager(RotatingServer())
        for token in ["", "a\r\nX-Admin: 1", "caf\u{e9}"] {
            await #expect(throws: TokenError.malformed("the access token")) {
                try await manager.updateTokens(TokenInfo(accessToken: token))
            }
        }
        #expect(try await scene.record() == nil)
    }

    @Test func aRecordOfANewerProgramIsNotTakenForNone() async throws {
        let manager = scene.manager(RotatingServer())
        try await manager.updateTokens(scene.tokens())
        let whole = try #require(try await scene.storage.retrieve(for: "auth/session/work"))
        await manager.invalidateCache()
        try await scene.storage.store(
            token: whole.replacing("\"version\":1", with: "\"version\":3"), for: "auth/session/work")
        await #expect(throws: TokenError.unknownRecord) { try await manager.validAccessToken() }
        #expect(try await scene.record() != nil)
    }
}

/// Where a hook finds the manager that it was given to.
private final class Place: @unchecked Sendable {
    nonisolated(unsafe) weak var manager: TokenManager?
}
