/// Signing in and out, whoever the provider is: what an app's screens need.
public protocol AuthProviding: Sendable {
    /// Signs in at `provider`. Throws what its sign-in code throws, and ``TokenError``.
    func login(provider: AuthProviderName) async throws
    /// Signs out. Throws `storage` when the session is still there, `notRevoked` when the server could not be told.
    func logout() async throws(TokenError)
    /// Deletes the account at the server, then the session here. Throws what the deletion throws; the session is still there
    /// then.
    func deleteAccount() async throws
    /// The state of now, then every change.
    func observeAuthState() -> AuthStates
}

/// An account that several providers can sign in to.
public struct AccountAuth: AuthProviding {
    /// The service that keeps the session.
    public let service: any AuthenticationService
    private let deletion: @Sendable (AccessToken) async throws -> Void

    /// An account of `service`. `deletion` asks the server to delete the account whose access token it is given.
    public init(
        service: any AuthenticationService, deletion: @escaping @Sendable (AccessToken) async throws -> Void
    ) {
        self.service = service
        self.deletion = deletion
    }

    /// See ``AuthProviding/login(provider:)``.
    public func login(provider: AuthProviderName) async throws {
        try await service.login(SignInRequest(provider: provider))
    }

    /// See ``AuthProviding/logout()``.
    public func logout() async throws(TokenError) { try await service.logout() }

    /// See ``AuthProviding/deleteAccount()``. A guest that no server knows of is only signed out.
    public func deleteAccount() async throws {
        if case .guest = await service.manager.authState(), try await service.manager.currentTokens() == nil {
            try await service.manager.clearTokens()
            return
        }
        let token = try await service.manager.accessToken()
        try await deletion(token)
        try await service.manager.clear(session: token.session)
    }

    /// See ``AuthProviding/observeAuthState()``.
    public func observeAuthState() -> AuthStates { service.authStates }
}
