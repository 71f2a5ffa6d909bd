import Testing
import TokenVault

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

@Suite struct ServiceTests {
    private let scene = TestFixture()
    private let person = AuthUser(identifier: "1", name: "A Person", email: "person@example.com")

    private func jwt(
        _ server: RotatingServer = RotatingServer(), access: String = "access-0", signsGuestsIn: Bool = false
    ) -> JWTAuthService {
        JWTAuthService(
            storage: scene.storage, account: "jwt", configuration: scene.configuration,
            signsGuestsIn: signsGuestsIn,
            revoke: server.revoker, refresh: server.provider
        ) { [person] request in
            guard request.credential == Secret(utf8: "fake-password") || request.provider == .guest else {
                throw WrongPassword()
            }
            return SignIn(tokens: TokenInfo(accessToken: access, refreshToken: "refresh-0"), user: person)
        }
    }

    private struct WrongPassword: Error {}

    private let signIn = SignInRequest(
        provider: .password, userName: "person", credential: Secret(utf8: "fake-password"))

    @Test func signingInIsStoredWithWhoItIs() async throws {
        let service = jwt()
        #expect(try await service.isAuthenticated() == false)
        try await service.login(signIn)
        #expect(try await service.currentUser() == person)
        // Another start of the app finds the user without a network.
        let next = jwt()
        #expect(await next.manager.authState() == .signedIn(person))
        #expect(try await next.currentUser() == person)
    }

    @Test func aLoginThatFailsLeavesTheSessionThatIsThere() async throws {
        let service = jwt()
        try await service.login(signIn)
        let wrong = SignInRequest(provider: .password, userName: "person", credential: Secret(utf8: "wrong"))
        await #expect(throws: WrongPassword.self) { try await service.login(wrong) }
        #expect(await service.manager.authState() == .signedIn(person))
    }

    @Test func loggingOutTellsTheServer() async throws {
        let server = RotatingServer()
        let service = jwt(server)
        try await service.login(signIn)
        try await service.logout()
        #expect(server.revoked == ["refresh-0"])
        #expect(await service.manager.authState() == .signedOut)
    }

    @Test func refreshingKeepsWhoItIs() async throws {
        let server = RotatingServer()
        let service = jwt(server)
        try await service.login(signIn)
        try await service.refreshAuth()
        #expect(server.requests == 1)
        #expect(try await service.currentUser() == person)
        #expect(try await service.manager.validAccessToken() == "access-1")
    }

    /// {"exp":1800000100} between a header and a signature that no program checks.
    private let timed = "eyJhbGciOiJub25lIn0.eyJleHAiOjE4MDAwMDAxMDB9.c2ln"

    @Test func aTokensOwnExpiryIsTakenWhereTheServerTellsNone() async throws {
        let service = jwt(access: timed)
        try await service.login(signIn)
        let tokens = try #require(await service.manager.currentTokens())
        #expect(tokens.accessTokenExpiry == Date(timeIntervalSince1970: 1_800_000_100))
        scene.clock.advance(by: 99)
        #expect(try await service.manager.validAccessToken() == "access-1")
    }

    @Test(arguments: [
        "", "a.b", "a.b.c", "..", "a.e30.c", "a.eyJleHAiOiJ4In0.c", "a.eyJleHAiOi0xfQ.c",
        "a.eyJleHAiOjFlMzA5fQ.c",
        String(repeating: "a.", count: 70_000),
    ])
    func whatIsNoTokenOfThatKindHasNoExpiry(_ token: String) {
        #expect(UnverifiedClaims(token)?.expiry == nil)
    }

    @Test func aSessionIdEndsAtItsExpiry() async throws {
        let expiry = scene.clock.now.addingTimeInterval(600)
        let service = SessionAuthService(
            storage: scene.storage, account: "cookie", configuration: scene.configuration
        ) { _ in SignIn(tokens: TokenInfo(accessToken: "sid=fake", accessTokenExpiry: expiry)) }
        try await service.login(signIn)
        #expect(try await service.manager.validAccessToken() == "sid=fake")
        scene.clock.advance(by: 601)
        #expect(try await service.isAuthenticated() == false)
        await #expect(throws: TokenError.refreshTokenMissing) { try await service.manager.validAccessToken() }
    }

    @Test func aSessionIdIsExtendedWhereThereIsAWay() async throws {
        let scene = scene
        let service = SessionAuthService(
            storage: scene.storage, account: "cookie", configuration: scene.configuration,
            extend: { request in
                TokenRefreshResponse(
                    accessToken: request.refreshToken + "+", expiresIn: 600)
            }
        ) { _ in
            SignIn(
                tokens: TokenInfo(
                    accessToken: "sid=fake", accessTokenExpiry: scene.clock.now.addingTimeInterval(600)))
        }
        try await service.login(signIn)
        // Each extension is requested with the id of that moment.
        for id in ["sid=fake+", "sid=fake++"] {
            scene.clock.advance(by: 601)
            #expect(try await service.manager.validAccessToken() == id)
        }
        #expect(try await service.isAuthenticated())
    }

    @Test func aGuestIsSignedInWithoutAServer() async throws {
        let service = jwt()
        try await service.login(.guest)
        guard case .guest(let guest) = await service.manager.authState() else {
            Issue.record("no guest")
            return
        }
        #expect(guest.isGuest)
        #expect(try await service.isAuthenticated())
        await #expect(throws: TokenError.tokenNotFound) { try await service.manager.validAccessToken() }
        #expect(try await service.manager.currentTokens() == nil)
        // Another start finds the same guest. After signing in, the user takes the guest's place.
        #expect(await jwt().manager.authState() == .guest(guest))
        try await service.login(signIn)
        #expect(await service.manager.authState() == .signedIn(person))
    }

    @Test func aGuestOfTheServersHasTokens() async throws {
        let service = jwt(signsGuestsIn: true)
        try await service.login(.guest)
        #expect(try await service.manager.validAccessToken() == "access-0")
        #expect(await service.manager.authState().user?.isGuest == true)
    }

    @Test func deletingTheAccountAsksTheServerFirst() async throws {
        let service = jwt()
        try await service.login(signIn)
        let refusing = AccountAuth(service: service) { _ in throw WrongPassword() }
        await #expect(throws: WrongPassword.self) { try await refusing.deleteAccount() }
        #expect(await service.manager.authState() == .signedIn(person))
        let deleted = Notes<String>()
        let auth = AccountAuth(service: service) { deleted.add($0.text) }
        try await auth.deleteAccount()
        #expect(deleted.all == ["access-0"])
        #expect(try await scene.storage.list().items.isEmpty)
        try await service.login(.guest)
        try await auth.deleteAccount()
        #expect(deleted.all == ["access-0"])
        #expect(await service.manager.authState() == .signedOut)
    }

    @Test func lockedIsToldToThoseWhoWatch() async throws {
        let service = jwt()
        try await service.login(signIn)
        scene.vault.setLockState(.afterFirstUnlock)
        let next = jwt()
        var states = next.authStates.makeAsyncIterator()
        #expect(await states.next() == .locked(wasSignedIn: true))
        scene.vault.setLockState(.unlocked)
        #expect(await next.manager.authState() == .signedIn(person))
        #expect(await states.next() == .signedIn(person))
        try await next.logout()
        #expect(await states.next() == .signedOut)
    }

    @Test func noncesAreOfTheirCharactersAndLength() {
        let allowed = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._")
        let text = SignInNonce.randomNonceString(length: 100_000)
        #expect(text.count == 100_000)
        #expect(Set(text) == allowed)
        #expect(SignInNonce.randomNonceString() != SignInNonce.randomNonceString())
        #expect(SignInNonce.randomNonceString(length: 0).isEmpty)
        // The example of FIPS 180-4.
        #expect(
            SignInNonce.sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
}
