public import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// An access token and a refresh token of the app's own server.
///
/// If the server gives no lifetime and the access token is a JSON Web Token (RFC 7519), its `exp` claim sets
/// the expiry. The claim is not verified, since only the server can do that. It decides nothing but when to
/// refresh.
public struct JWTAuthService: AuthenticationService {
    /// The manager of the session.
    public let manager: TokenManager
    private let signIn: SignInProvider
    private let signsGuestsIn: Bool

    /// Creates a service whose session is stored in `storage` under `account`. `signIn` signs in at the
    /// server, `refresh` refreshes the tokens, and `revoke` revokes the session at the server.
    public init(
        storage: any TokenStorage, account: String,
        configuration: TokenManager.Configuration = TokenManager.Configuration(), signsGuestsIn: Bool = false,
        revoke: RevokeRequestProvider? = nil, refresh: @escaping RefreshRequestProvider,
        signIn: @escaping SignInProvider
    ) {
        self.signIn = signIn
        self.signsGuestsIn = signsGuestsIn
        let clock = configuration.clock
        manager = TokenManager(
            storage: storage, account: account, configuration: configuration, revokeRequestProvider: revoke,
            refreshRequestProvider: { request in
                var response = try await refresh(request)
                if response.expiresIn == nil {
                    // The claim is a time of the server's clock.
                    let now = response.serverDate ?? clock()
                    response.expiresIn = UnverifiedClaims(response.accessToken)?.expiry
                        .map { $0 - now.timeIntervalSince1970 }
                }
                return response
            })
    }

    /// Always `jwt`.
    public var authType: AuthType { .jwt }

    public func login(_ request: SignInRequest) async throws {
        try await begin(request, by: signIn, signsGuestsIn: signsGuestsIn) { signIn in
            var signIn = signIn
            if signIn.tokens.accessTokenExpiry == nil {
                signIn.tokens.accessTokenExpiry = UnverifiedClaims(signIn.tokens.accessToken)?.expiry
                    .map(Date.init(timeIntervalSince1970:))
            }
            return signIn
        }
    }
}
