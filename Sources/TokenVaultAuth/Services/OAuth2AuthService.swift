public import TokenVault

/// Tokens of an OAuth 2 or OpenID Connect provider.
///
/// The app passes in the code that gets them: `TokenVaultOAuth` has the flows, and any other client works
/// too.
public struct OAuth2AuthService: AuthenticationService {
    /// The manager of the session.
    public let manager: TokenManager
    private let signIn: SignInProvider
    private let signsGuestsIn: Bool

    /// Creates a service whose session is stored in `storage` under `account`. `signIn` runs the flow that
    /// `request.provider` names. `refresh` and `revoke` send the requests of RFC 6749 section 6 and RFC 7009.
    public init(
        storage: any TokenStorage, account: String,
        configuration: TokenManager.Configuration = TokenManager.Configuration(), signsGuestsIn: Bool = false,
        revoke: RevokeRequestProvider? = nil, refresh: @escaping RefreshRequestProvider,
        signIn: @escaping SignInProvider
    ) {
        self.init(
            manager: TokenManager(
                storage: storage, account: account, configuration: configuration,
                revokeRequestProvider: revoke,
                refreshRequestProvider: refresh),
            signsGuestsIn: signsGuestsIn, signIn: signIn)
    }

    /// Creates a service on top of an existing manager.
    public init(manager: TokenManager, signsGuestsIn: Bool = false, signIn: @escaping SignInProvider) {
        self.manager = manager
        self.signIn = signIn
        self.signsGuestsIn = signsGuestsIn
    }

    /// Always `oauth2`.
    public var authType: AuthType { .oauth2 }

    public func login(_ request: SignInRequest) async throws {
        try await begin(request, by: signIn, signsGuestsIn: signsGuestsIn)
    }
}
