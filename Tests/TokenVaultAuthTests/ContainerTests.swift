import Observation
import Testing
import TokenVault
import TokenVaultAuth

@MainActor @Suite struct ContainerTests {
    private let scene = TestFixture()

    private struct Factory: AuthServiceFactory {
        let scene: TestFixture

        func service(for type: AuthType) throws -> any AuthenticationService {
            let server = RotatingServer()
            let signIn: SignInProvider = { request in
                SignIn(
                    tokens: TokenInfo(accessToken: "access-0", refreshToken: "refresh-0"),
                    user: AuthUser(identifier: "\(type.rawValue) \(request.userName ?? "")"))
            }
            switch type {
            case .session: throw NoSuchService()
            case .jwt:
                return JWTAuthService(
                    storage: scene.storage, account: "jwt", configuration: scene.configuration,
                    refresh: server.provider, signIn: signIn)
            case .oauth2:
                return OAuth2AuthService(
                    storage: scene.storage, account: "oauth2", configuration: scene.configuration,
                    revoke: server.revoker, refresh: server.provider, signIn: signIn)
            }
        }
    }

    private struct NoSuchService: Error {}

    /// Waits until the container's state is what is asked for, as a view does.
    private func wait(for container: AuthContainer, _ isIt: @escaping @MainActor (AuthState) -> Bool) async {
        for await state in Observations({ container.state }) where isIt(state) { return }
    }

    @Test func viewsSeeWhoIsSignedIn() async throws {
        let container = try AuthContainer(factory: Factory(scene: scene), authType: .jwt)
        #expect(container.state == .unknown)
        await wait(for: container) { $0 == .signedOut }
        try await container.login(SignInRequest(provider: .password, userName: "me"))
        await wait(for: container) { $0.isSignedIn }
        #expect(container.currentUser?.identifier == "jwt me")
        try await container.logout()
        await wait(for: container) { $0 == .signedOut }
    }

    @Test func theServiceIsExchangedWhileTheAppRuns() async throws {
        let container = try AuthContainer(factory: Factory(scene: scene), authType: .jwt)
        try await container.login(SignInRequest(provider: .password, userName: "me"))
        await wait(for: container) { $0.isSignedIn }
        let old = container.service
        try await container.switchAuthType(.oauth2)
        #expect(container.authType == .oauth2)
        await wait(for: container) { $0 == .signedOut }
        // Events of the previous service no longer reach the container.
        try await old.manager.clearTokens()
        try await container.login(SignInRequest(provider: "example", userName: "me"))
        await wait(for: container) { $0.isSignedIn }
        #expect(container.currentUser?.identifier == "oauth2 me")
        try await container.switchAuthType(.jwt, signingOut: true)
        #expect(try await TokenManager.accounts(in: scene.storage).isEmpty)
    }

    @Test func aServiceThatCannotBeMadeChangesNothing() async throws {
        let container = try AuthContainer(factory: Factory(scene: scene), authType: .jwt)
        await #expect(throws: NoSuchService.self) { try await container.switchAuthType(.session) }
        #expect(container.authType == .jwt)
    }

    @Test func aStateIsLookedAtAgainAfterAnUnlock() async throws {
        let first = try AuthContainer(factory: Factory(scene: scene), authType: .jwt)
        try await first.login(SignInRequest(provider: .password, userName: "me"))
        scene.vault.setLockState(.locked)
        let container = try AuthContainer(factory: Factory(scene: scene), authType: .jwt)
        await wait(for: container) { $0 == .locked(wasSignedIn: nil) }
        #expect(!container.isSignedIn)
        scene.vault.setLockState(.unlocked)
        await container.refreshState()
        #expect(container.isSignedIn)
    }
}
