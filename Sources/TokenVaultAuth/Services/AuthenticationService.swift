/// The credential that proves a session to the server.
public enum AuthType: String, CaseIterable, Hashable, Sendable, Codable {
    /// A session id of the server, as in a cookie, with an expiry.
    case session
    /// An access token and a refresh token of the app's own server, usually JSON Web Tokens.
    case jwt
    /// Tokens of an OAuth 2 or OpenID Connect provider.
    case oauth2
}

/// One way of signing in, and its session.
///
/// The ``TokenManager`` stores and refreshes the session and reports its state; a service adds how a session
/// begins.
public protocol AuthenticationService: Sendable {
    /// The credential that proves a session to the server.
    var authType: AuthType { get }
    /// The manager of the session.
    var manager: TokenManager { get }
    /// Signs in, in place of the previous session. For a guest without sign-in code, begins a session that no
    /// server knows. Throws the errors of the sign-in code, and ``TokenError``.
    func login(_ request: SignInRequest) async throws
    /// Signs out: revokes the session at the server where there is a way to, and ends it locally. Throws
    /// `storage` when the session is still stored. Throws `notRevoked` when it was ended locally and the
    /// revocation at the server failed.
    func logout() async throws(TokenError)
    /// Refreshes the session now. Throws the same errors as ``TokenManager/validAccessToken()``.
    func refreshAuth() async throws(TokenError)
}

extension AuthenticationService {
    /// Returns whether there is a session, without asking the server. Throws `storage`, `unknownRecord`: an
    /// unreadable session does not count as signed out.
    public func isAuthenticated() async throws(TokenError) -> Bool { try await manager.isAuthenticated() }

    /// Returns the signed-in user; `nil` when the account is signed out, or the sign-in gave no user. Throws
    /// `storage`, `unknownRecord`.
    public func currentUser() async throws(TokenError) -> AuthUser? { try await manager.currentUser() }

    /// A sequence of the present state and every change after it.
    public var authStates: AuthStates { manager.authStates }

    public func logout() async throws(TokenError) { try await manager.revokeTokens() }

    public func refreshAuth() async throws(TokenError) { try await manager.refreshTokens() }

    /// Signs in with the result of `provider`, or begins a guest session when there is no sign-in code for
    /// guests.
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
