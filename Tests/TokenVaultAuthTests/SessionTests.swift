import HookedStorage
import Testing
import TokenVault

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// The signed-in user, and what becomes of a refresh when the user changes during it.
@Suite struct SessionTests {
    private let scene = TestFixture()

    @Test func aRefreshThatComesAfterSigningOutIsNotStored() async throws {
        let place = Notes<TokenManager>()
        let server = RotatingServer { _ in _ = try? await place.all.first?.clearTokens() }
        let manager = scene.manager(server)
        place.add(manager)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.sessionChanged) { try await manager.validAccessToken() }
        #expect(try await scene.record() == nil)
        #expect(await manager.authState() == .signedOut)
        // The tokens that came late are revoked.
        for _ in 0..<100_000 where server.revoked.isEmpty { await Task.yield() }
        #expect(server.revoked == ["refresh-1"])
    }

    @Test func aRefreshThatComesAfterTheNextUserSignedInIsNotTheirs() async throws {
        let scene = scene
        let place = Notes<TokenManager>()
        let server = RotatingServer { _ in
            try? await place.all.first?.updateTokens(
                TokenInfo(
                    accessToken: "next-user", refreshToken: "next-refresh",
                    accessTokenExpiry: scene.clock.now.addingTimeInterval(3_600)))
        }
        let manager = scene.manager(server)
        place.add(manager)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.sessionChanged) { try await manager.validAccessToken() }
        #expect(try await manager.validAccessToken() == "next-user")
        #expect(try #require(await scene.record()).contains("refresh-1") == false)
    }

    @Test func whoSignsInDuringAnothersRefreshGetsTheirOwnToken() async throws {
        let scene = scene
        let gate = Gate()
        let begun = Gate()
        let server = RotatingServer(begun: begun, answeringAt: gate)
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let first = Task { try await manager.validAccessToken() }
        await begun.pass()
        try await manager.updateTokens(
            TokenInfo(
                accessToken: "expired", refreshToken: "refresh-1",
                accessTokenExpiry: scene.clock.now.addingTimeInterval(-1)))
        let second = Task { try await manager.validAccessToken() }
        gate.open()
        await #expect(throws: TokenError.sessionChanged) { try await first.value }
        // The server accepts refresh-1 after the first request has issued it.
        #expect(try await second.value == "access-2")
    }

    @Test func lockedIsNotSignedOut() async throws {
        let manager = scene.manager(RotatingServer())
        try await manager.updateTokens(scene.tokens())
        scene.vault.setLockState(.afterFirstUnlock)
        let next = scene.manager(RotatingServer())
        #expect(await next.authState() == .locked(wasSignedIn: true))
        await #expect { try await next.validAccessToken() } throws: { error in
            if case TokenError.storage(let reason) = error { reason.code == .locked } else { false }
        }
        await #expect(throws: TokenError.self) { try await next.isAuthenticated() }
        await #expect(throws: TokenError.self) { try await next.clearTokens() }
        scene.vault.setLockState(.unlocked)
        #expect(await next.authState() == .signedIn(nil))
        try await next.clearTokens()
        scene.vault.setLockState(.afterFirstUnlock)
        #expect(await scene.manager(RotatingServer()).authState() == .signedOut)
        scene.vault.setLockState(.locked)
        #expect(await scene.manager(RotatingServer()).authState() == .locked(wasSignedIn: nil))
    }

    @Test func aLockedFileTellsWhoWasSignedIn() async throws {
        let vault = try SharedVault()
        let storage = try vault.storage()
        let manager = scene.manager(RotatingServer(), storage: storage)
        try await storage.store(token: "not a real token", for: "another")
        try await manager.updateTokens(scene.tokens())
        vault.lockAll()
        #expect(
            await scene.manager(RotatingServer(), storage: storage).authState()
                == .locked(wasSignedIn: true))
        try vault.unlockAll()
        try await manager.clearTokens()
        #expect(try await storage.list().items.map(\.key) == ["another"])
        vault.lockAll()
        #expect(await scene.manager(RotatingServer(), storage: storage).authState() == .signedOut)
    }

    @Test func revokingTellsTheServerAndSignsOut() async throws {
        let server = RotatingServer()
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens())
        try await manager.revokeTokens()
        #expect(server.revoked == ["refresh-0"])
        #expect(try await scene.record() == nil)
    }

    @Test func aServerThatCannotBeToldKeepsNobodySignedIn() async throws {
        let scene = scene
        let manager = TokenManager(
            storage: scene.storage, account: "work", configuration: scene.configuration,
            revokeRequestProvider: { _ in throw RefreshFailure(.notSent) },
            refreshRequestProvider: RotatingServer().provider)
        try await manager.updateTokens(scene.tokens())
        await #expect(throws: TokenError.notRevoked(RefreshFailure(.notSent))) {
            try await manager.revokeTokens()
        }
        #expect(await manager.authState() == .signedOut)
    }

    @Test func whatARefreshBringsDuringRevocationIsRevoked() async throws {
        let gate = Gate()
        let begun = Gate()
        let vault = try SharedVault()
        let server = RotatingServer(begun: begun, answeringAt: gate)
        let manager = scene.manager(server, storage: try vault.storage())
        let other = scene.manager(server, storage: try vault.storage())
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let refresh = Task { try await manager.validAccessToken() }
        await begun.pass()
        let revocation = Task { try await other.revokeTokens() }
        // The revocation waits for the refresh, so it does not revoke tokens that are about to be replaced.
        for _ in 0..<10_000 where server.revoked.isEmpty { await Task.yield() }
        #expect(server.revoked.isEmpty)
        gate.open()
        #expect(try await refresh.value == "access-1")
        try await revocation.value
        #expect(server.revoked == ["refresh-1"])
        #expect(try await other.currentTokens() == nil)
    }

    @Test func accountsAreSideBySide() async throws {
        let server = RotatingServer()
        let work = scene.manager(server)
        let home = scene.manager(server, account: "home/of me")
        try await work.updateTokens(scene.tokens())
        try await home.updateTokens(TokenInfo(accessToken: "home"))
        #expect(try await TokenManager.accounts(in: scene.storage) == ["home/of me", "work"])
        #expect(try await home.validAccessToken() == "home")
        try await work.clearTokens()
        #expect(try await TokenManager.accounts(in: scene.storage) == ["home/of me"])
        #expect(try await home.validAccessToken() == "home")
    }

    @Test func everyReaderSeesTheTokensOfNowAndThenEveryChange() async throws {
        let server = RotatingServer()
        let manager = scene.manager(server)
        let early = Task { await firstThree(of: manager.tokenStream) }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let late = manager.tokenStream
        _ = try await manager.validAccessToken()
        try await manager.clearTokens()
        var iterator = late.makeAsyncIterator()
        #expect(await iterator.next()??.accessToken == "access-0")
        #expect(await iterator.next()??.accessToken == "access-1")
        #expect(await iterator.next() == .some(nil))
        #expect(await early.value.contains("access-1"))
    }

    private func firstThree(of stream: TokenStream) async -> [String] {
        var seen: [String] = []
        for await tokens in stream {
            seen.append(tokens?.accessToken ?? "none")
            if seen.last == "access-1" || seen.count > 5 { break }
        }
        return seen
    }

    @Test func otherManagersChangesAreSeen() async throws {
        let server = RotatingServer()
        let vault = try SharedVault()
        let manager = scene.manager(server, storage: try vault.storage())
        let other = scene.manager(server, storage: try vault.storage())
        var iterator = other.tokenStream.makeAsyncIterator()
        #expect(await iterator.next() == .some(nil))
        try await manager.updateTokens(scene.tokens())
        #expect(await iterator.next()??.accessToken == "access-0")
        #expect(try await other.validAccessToken() == "access-0")
        try await manager.clearTokens()
        #expect(await iterator.next() == .some(nil))
        await #expect(throws: TokenError.tokenNotFound) { try await other.validAccessToken() }
    }

    @Test func aClockThatIsSetDoesNotChangeWhatTheServerSaid() async throws {
        let server = RotatingServer()
        let manager = scene.manager(server)
        let (api, other) = (RequestOrigin.https("api.example.com"), RequestOrigin.https("other.example.com"))
        try await manager.updateTokens(scene.tokens())
        let begin = scene.clock.now
        manager.noteServerDate(begin, from: api)
        // The user sets this machine's clock two hours ahead, and the server's next answer shows it.
        scene.clock.advance(by: 7_200)
        manager.noteServerDate(begin, from: api)
        #expect(try await manager.validAccessToken() == "access-0")
        #expect(server.requests == 0)
        // Another server's clock does not matter unless it changes.
        for _ in 0..<3 {
            manager.noteServerDate(begin.addingTimeInterval(86_400), from: other)
            #expect(try await manager.validAccessToken() == "access-0")
        }
        scene.clock.advance(by: 3_600)
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.requests == 1)
    }

    @Test func whoSignsInWhileAnotherSignsOutStaysSignedIn() async throws {
        let place = Notes<TokenManager>()
        let scene = scene
        let next = TokenInfo(accessToken: "next-user", refreshToken: "next-refresh")
        let manager = TokenManager(
            storage: scene.storage, account: "work", configuration: scene.configuration,
            revokeRequestProvider: { tokens in
                guard tokens.refreshToken == "refresh-0" else { throw RefreshFailure(.refused("wrong_user")) }
                try await place.all.first?.updateTokens(next)
            },
            refreshRequestProvider: RotatingServer().provider)
        place.add(manager)
        try await manager.updateTokens(scene.tokens())
        try await manager.revokeTokens()
        #expect(try await manager.validAccessToken() == "next-user")
        // The same holds while an account is deleted.
        let service = OAuth2AuthService(manager: manager) { _ in SignIn(tokens: next) }
        try await manager.updateTokens(scene.tokens())
        try await AccountAuth(service: service) { _ in try await manager.updateTokens(next) }.deleteAccount()
        #expect(try await manager.validAccessToken() == "next-user")
    }

    @Test func signingOutEndsAlsoWhatIsNotUnderstood() async throws {
        try await scene.storage.store(token: #"{"version":3}"#, for: "auth/session/work")
        let manager = scene.manager(RotatingServer())
        await #expect(throws: TokenError.notRevoked(RefreshFailure(.refused("unknown_record")))) {
            try await manager.revokeTokens()
        }
        #expect(await manager.authState() == .signedOut)
    }

    /// The server may have issued tokens that were lost. They cannot be revoked, so the session may go on.
    @Test func signingOutAfterALostAnswerSaysThatTheSessionMayGoOn() async throws {
        let server = RotatingServer(answers: [.failure(RefreshFailure(.timedOut))])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        await #expect(throws: TokenError.notRevoked(RefreshFailure(.timedOut))) {
            try await manager.revokeTokens()
        }
        #expect(server.revoked == ["refresh-0"])
        #expect(await manager.authState() == .signedOut)
    }

    @Test func aProviderThatDoesNotReturnKeepsNobodySignedIn() async throws {
        let scene = scene
        let gate = Gate()
        var configuration = scene.configuration
        configuration.refreshTimeout = .milliseconds(1)
        let manager = TokenManager(
            storage: scene.storage, account: "work", configuration: configuration,
            revokeRequestProvider: { _ in await gate.pass() },
            refreshRequestProvider: RotatingServer().provider)
        try await manager.updateTokens(scene.tokens())
        await #expect(throws: TokenError.notRevoked(RefreshFailure(.timedOut))) {
            try await manager.revokeTokens()
        }
        #expect(await manager.authState() == .signedOut)
        gate.open()
    }

    @Test(arguments: ["", String(repeating: "a", count: 1_001)])
    func anAccountThatIsNoneIsRefused(_ account: String) async throws {
        let manager = scene.manager(RotatingServer(), account: account)
        for call in [
            { try await manager.updateTokens(TokenInfo(accessToken: "a")) },
            { _ = try await manager.currentTokens() },
        ]
            as [@Sendable () async throws -> Void]
        {
            await #expect { try await call() } throws: { error in
                if case TokenError.storage(let reason) = error { reason.code == .invalidKey } else { false }
            }
        }
    }

    /// A name may begin with what is one character together with the slash before it.
    @Test(arguments: ["\u{301}a", "a", "\u{20d0}"])
    func anAccountIsListedByItsWholeName(_ account: String) async throws {
        let manager = scene.manager(RotatingServer(), account: account)
        try await manager.updateTokens(scene.tokens())
        let accounts = try await TokenManager.accounts(in: scene.storage)
        #expect(accounts.map { Array($0.unicodeScalars) } == [Array(account.unicodeScalars)])
    }

    @Test func accountsAreListedWhileTheyAreLocked() async throws {
        let vault = try SharedVault()
        let storage = try vault.storage()
        try await scene.manager(RotatingServer(), storage: storage).updateTokens(scene.tokens())
        try await storage.store(token: "fake", for: "an app's own/session")
        vault.lockAll()
        #expect(try await TokenManager.accounts(in: storage) == ["work"])
    }

    @Test func aSignOutOfNobodyDoesNotHideTheNextSignIn() async throws {
        let gate = Gate()
        let begun = Gate()
        let storage = HookedStorage(base: scene.storage) { call, moment, keys in
            guard call == .commit, moment == .after, begun.isClosed else { return }
            begun.open()
            await gate.pass()
        }
        let manager = scene.manager(RotatingServer(), storage: storage)
        let clear = Task { try await manager.clearTokens() }
        await begun.pass()
        try await manager.updateTokens(scene.tokens())
        gate.open()
        #expect(try await clear.value == false)
        #expect(try await manager.validAccessToken() == "access-0")
    }
}
