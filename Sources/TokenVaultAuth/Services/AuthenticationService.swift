/// How a session is proved to the server.
public enum AuthType: String, CaseIterable, Hashable, Sendable, Codable {
    /// A session id of the server's, as in a cookie, with an expiry.
    case session
    /// An access token and a refresh token of the app's own server, JSON Web Tokens mostly.
    case jwt
    /// Tokens of an OAuth 2 or OpenID Connect provider.
    case oauth2
}

/// One way of signing in, and the session that comes of it.
///
/// What is stored, renewed and told is the ``TokenManager``'s; a service adds how a session begins.
public protocol AuthenticationService: Sendable {
    /// How a session is proved to the server.
    var authType: AuthType { get }
    /// The manager of the session.
    var manager: TokenManager { get }
    /// Signs in, in place of the session that is there. For a guest, where no code of the app's signs guests in, it begins a
    /// session that no server knows of. Throws what the sign-in code throws, and ``TokenError``.
    func login(_ request: SignInRequest) async throws
    /// Signs out: the server is told where there is a way to, and the session is gone here. Throws `storage` when it is not
    /// gone, `notRevoked` when it is and the server could not be told.
    func logout() async throws(TokenError)
    /// Renews the session now. Throws as ``TokenManager/validAccessToken()``.
    func refreshAuth() async throws(TokenError)
}

extension AuthenticationService {
    /// Whether there is a session, without asking the server. Throws `storage`, `unknownRecord`: what cannot be read is not
    /// signed out.
    public func isAuthenticated() async throws(TokenError) -> Bool { try await manager.isAuthenticated() }

    /// Who is signed in; `nil` when nobody is, or the sign-in did not tell. Throws `storage`, `unknownRecord`.
    public func currentUser() async throws(TokenError) -> AuthUser? { try await manager.currentUser() }

    /// The state of now, then every change.
    public var authStates: AuthStates { manager.authStates }

    /// See the requirement.
    public func logout() async throws(TokenError) { try await manager.revokeTokens() }

    /// See the requirement.
    public func refreshAuth() async throws(TokenError) { try await manager.refreshTokens() }

    /// Signs in with what `provider` gives, or begins a guest's session where there is none for guests.
    func begin(
        _ request: SignInRequest, by provider: SignInProvider, signsGuestsIn: Bool,
        _ completed: (SignIn) throws(TokenError) -> SignIn = { $0 }
    ) async throws {
        if request.provider == .guest, !signsGuestsIn { return try await manager.beginGuestSession() }
        var signIn = try completed(try await provider(request))
        if request.provider == .guest {
            var user = signIn.user ?? AuthUser(identifier: "guest")
            user.isGuest = true
            signIn.user = user
        }
        try await manager.updateTokens(signIn.tokens, user: signIn.user)
    }
}
