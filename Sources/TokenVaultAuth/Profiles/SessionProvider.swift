internal import TokenVaultPlatform

/// The failure of a request to a provider, as its conformer to ``SessionProvider`` knows it.
package protocol ProviderFailure: Error, Sendable {
    /// The same failure for a refresh, which tells whether the provider may have taken the token.
    var refreshFailure: RefreshFailure { get }
}

/// A way to ask providers: in this process, or through another program.
///
/// A request ends soon after its limit or a cancellation of its task, with an answer that arrived meanwhile or
/// with a failure. An answer that is complete counts even after the limit, because its tokens would be lost.
package protocol SessionProvider: Sendable {
    associatedtype Failure: ProviderFailure

    /// Signs a user in. A conformer revokes tokens that arrive after a cancellation and are not returned.
    func authorize(_ settings: SignInSettings, within limit: Duration) async throws(Failure) -> SignedIn

    /// Sends the session's refresh token (RFC 6749 section 6).
    func refresh(
        _ request: RefreshRequest, of profile: Profile, within limit: Duration
    ) async throws(Failure) -> TokenRefreshResponse

    /// Revokes tokens that the provider of `profile` issued (RFC 7009). Runs even in a cancelled task, because
    /// a revocation is often part of its end.
    func revoke(_ tokens: TokenInfo, of profile: Profile, within limit: Duration) async throws(Failure)
}

/// The result of a sign-in: what the provider gave, and the profile for later requests.
package struct SignedIn: Sendable {
    package let tokens: TokenInfo
    package let profile: Profile
    /// The user, from the checked ID token; `nil` without one.
    package let user: AuthUser?
    /// Whether the token type is missing from the response. Bearer is then assumed.
    package var isTypeAssumed = false

    package init(tokens: TokenInfo, profile: Profile, user: AuthUser?) {
        self.tokens = tokens
        self.profile = profile
        self.user = user
    }
}

/// Printing a result shows no token.
extension SignedIn: RedactedStringConvertible {}

/// The result of a revocation of tokens.
package enum Revocation<Failure: ProviderFailure>: Sendable {
    /// The provider confirmed the revocation.
    case revoked
    /// The provider has no revocation endpoint.
    case notOffered
    /// The provider may not have got the request.
    case failed(Failure)

    /// Whether the provider has a revocation endpoint.
    package var isOffered: Bool {
        if case .notOffered = self { false } else { true }
    }

    /// Whether the provider confirmed the revocation.
    package var isRevoked: Bool {
        if case .revoked = self { true } else { false }
    }
}

extension SessionProvider {
    /// Revokes tokens that nothing stores any more. Takes ten seconds at most, five after a cancellation, and
    /// gets three of them even after the deadline.
    func revokeUnused(
        _ tokens: TokenInfo, of profile: Profile, until deadline: Deadline?
    ) async -> Revocation<Failure> {
        guard profile.offersRevocation else { return .notOffered }
        let most = Duration.seconds(Task.isCancelled ? 5 : 10)
        let limit = max(.seconds(3), min(most, deadline?.remaining ?? most))
        do throws(Failure) {
            try await revoke(tokens, of: profile, within: limit)
            return .revoked
        } catch {
            return .failed(error)
        }
    }
}
