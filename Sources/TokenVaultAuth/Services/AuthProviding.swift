/// Signing in and out for an app's screens, independent of the provider.
public protocol AuthProviding: Sendable {
    /// Signs in at `provider`. Throws the errors of its sign-in code, and ``TokenError``.
    func login(provider: AuthProviderName) async throws
    /// Signs out. Throws `storage` when the session is still stored, and `notRevoked` when the revocation at
    /// the server failed.
    func logout() async throws(TokenError)
    /// Deletes the account at the server, then the local session. Throws the errors of the deletion; the
    /// session is then still stored.
    func deleteAccount() async throws
    /// Returns a sequence of the present state and every change after it.
    func observeAuthState() -> AuthStates
}

/// An account with several sign-in providers.
public struct AccountAuth: AuthProviding {
    /// The service that keeps the session.
    public let service: any AuthenticationService
    private let deletion: @Sendable (AccessToken) async throws -> Void

    /// Creates an account of `service`. `deletion` gets an access token and asks the server to delete its
    /// account.
    public init(
        service: any AuthenticationService, deletion: @escaping @Sendable (AccessToken) async throws -> Void
    ) {
        self.service = service
        self.deletion = deletion
    }

    public func login(provider: AuthProviderName) async throws {
        try await service.login(SignInRequest(provider: provider))
    }

    public func logout() async throws(TokenError) { try await service.logout() }

    /// Deletes the account at the server and the session here. A guest that no server knows is only signed out.
    public func deleteAccount() async throws {
        if case .guest = await service.manager.authState(), try await service.manager.currentTokens() == nil {
            try await service.manager.clearTokens()
            return
        }
        let token = try await service.manager.accessToken()
        try await deletion(token)
        try await service.manager.clear(session: token.session)
    }

    public func observeAuthState() -> AuthStates { service.authStates }
}
