#if OAuth
import Foundation
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// Managers whose storages, providers and callers fail.
struct FailingManagers {
    let search: SecretSearch
    let listener: Listener

    private struct Chatty: LocalizedError {
        let token: String
        var errorDescription: String? { token }
    }

    private func tokens(expired: Bool = true) -> TokenInfo {
        let tokens = TokenInfo(
            accessToken: search.make(), refreshToken: search.make(), idToken: search.make(), scope: "openid")
        return expired ? tokens.expired : tokens
    }

    private func response() -> TokenRefreshResponse {
        TokenRefreshResponse(
            accessToken: search.make(), expiresIn: 60, refreshToken: search.make(), idToken: search.make())
    }

    private func manager(
        _ vault: InMemoryVault = InMemoryVault(), timeout: Duration = .seconds(3_600),
        revoke: RevokeRequestProvider? = nil, refresh: @escaping RefreshRequestProvider
    ) -> TokenManager {
        var configuration = TokenManager.Configuration()
        configuration.attempts = 1
        configuration.refreshTimeout = timeout
        return TokenManager(
            storage: vault.storage(service: "s"), account: "a", configuration: configuration,
            revokeRequestProvider: revoke, refreshRequestProvider: refresh)
    }

    func failInEveryWay() async throws {
        try await locked()
        try await chatty()
        try await cancelled()
        try await damaged()
        try await changed()
        try await services()
        for text in ["\r\n", "\u{0}", "\u{e9}"] {
            let manager = manager { _ in response() }
            let token = search.make() + text
            await listener.attempt { try await manager.updateTokens(TokenInfo(accessToken: token)) }
            await listener.attempt {
                try await manager.updateTokens(TokenInfo(accessToken: search.make(), refreshToken: token))
            }
        }
    }

    /// Locked before the session is read, and between a refresh and its storing.
    private func locked() async throws {
        let vault = InMemoryVault()
        let manager = manager(vault) { _ in
            vault.setLockState(.locked)
            return response()
        }
        try await manager.updateTokens(tokens())
        await listener.attempt { try await manager.validAccessToken() }
        listener.hear(manager)
        let other = self.manager(vault) { _ in response() }
        await listener.attempt { try await other.validAccessToken() }
        await listener.attempt { try await other.updateTokens(tokens()) }
        await listener.attempt { try await other.clearTokens() }
        await listener.attempt { try await other.revokeTokens() }
        listener.hear(await other.authState())
        vault.setLockState(.unlocked)
        await listener.attempt { try await manager.currentTokens() }
        await listener.attempt { try await manager.revokeTokens() }
    }

    private func chatty() async throws {
        let revoke: RevokeRequestProvider = { throw Chatty(token: $0.accessToken) }
        let manager = manager(revoke: revoke) { throw Chatty(token: $0.refreshToken) }
        for kind in [
            RefreshFailure.Kind.refused(search.make()), .invalidGrant, .serverError(500), .throttled,
        ] {
            listener.hear(RefreshFailure(kind))
            listener.hear(TokenError.refreshFailed(RefreshFailure(kind), retryAfter: Date()))
        }
        try await manager.updateTokens(tokens())
        await listener.attempt { try await manager.refreshTokens() }
        await listener.attempt { try await manager.revokeTokens() }
    }

    private func cancelled() async throws {
        let manager = manager(timeout: .milliseconds(1)) { _ in
            try await Task.sleep(for: .seconds(3_600))
            return response()
        }
        try await manager.updateTokens(tokens())
        let call = Task { try await manager.refreshTokens() }
        call.cancel()
        await listener.attempt { try await call.value }
        await listener.attempt { try await manager.refreshTokens() }
    }

    /// Records that another program wrote, or that are cut short.
    private func damaged() async throws {
        let vault = InMemoryVault()
        let manager = manager(vault) { _ in response() }
        let storage = vault.storage(service: "s")
        try await manager.updateTokens(tokens())
        let whole = try #require(try await storage.retrieve(for: "auth/session/a"))
        for damage in [
            String(whole.dropLast(5)), whole.replacing("\"version\":1", with: "\"version\":3"),
            whole.replacing("\"accessToken\":", with: "\"accessToken\":7,\"x\":"), search.make(),
            #"{"version":1,"session":"\#(search.make())"}"#,
        ] {
            try await storage.store(token: damage, for: "auth/session/a")
            await manager.invalidateCache()
            await listener.attempt { try await manager.validAccessToken() }
            await listener.attempt { try await manager.revokeTokens() }
            listener.hear(await manager.authState())
        }
    }

    /// Another session than the one that a call began with.
    private func changed() async throws {
        let vault = InMemoryVault()
        let other = manager(vault) { _ in response() }
        let manager = manager(vault) { _ in
            try await other.updateTokens(tokens())
            return response()
        }
        try await manager.updateTokens(tokens())
        await listener.attempt { try await manager.refreshTokens() }
        let token = try await other.accessToken()
        listener.hear(token)
        try await other.updateTokens(tokens())
        await listener.attempt { try await other.accessToken(replacing: token) }
        for await tokens in manager.tokenStream {
            listener.hear(tokens as Any)
            break
        }
        await listener.attempt { try await TokenManager.accounts(in: vault.storage(service: "s")) }
    }

    /// The services, what they are asked with, and what they have.
    private func services() async throws {
        let storage = InMemoryTokenStorage(service: "s")
        let signIn: SignInProvider = { request in
            listener.hear(request)
            guard request.provider == "right" else { throw TokenError.malformed("the password") }
            return SignIn(
                tokens: tokens(expired: false), user: AuthUser(identifier: search.make(), name: search.make())
            )
        }
        let services: [any AuthenticationService] = [
            SessionAuthService(storage: storage, account: "1", extend: { _ in response() }, signIn: signIn),
            JWTAuthService(storage: storage, account: "2", refresh: { _ in response() }, signIn: signIn),
            OAuth2AuthService(storage: storage, account: "3", refresh: { _ in response() }, signIn: signIn),
        ]
        for service in services {
            for provider in ["wrong", "right"] {
                let request = SignInRequest(
                    provider: AuthProviderName(provider), userName: search.make(),
                    credential: Secret(utf8: search.make()))
                await listener.attempt { try await service.login(request) }
            }
            listener.hear(service)
            listener.hear(try await service.currentUser() as Any)
            await listener.attempt { try await service.refreshAuth() }
            listener.hear(await service.manager.authState())
            let account = AccountAuth(service: service) { _ in throw Chatty(token: "nothing of ours") }
            listener.hear(account)
            await listener.attempt { try await account.deleteAccount() }
            await listener.attempt { try await service.logout() }
        }
        listener.hear(SignIn(tokens: tokens(), user: nil))
        listener.hear(IDTokenExpectation(nonce: search.make(), accessToken: search.make()))
    }
}
#endif
