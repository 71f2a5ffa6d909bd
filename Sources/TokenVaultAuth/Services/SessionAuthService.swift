public import TokenVault

/// A session that the server identifies by an id, as in a cookie, until an expiry.
///
/// The id is the access token of the ``TokenManager``. A ``TokenAuthProvider`` puts it into requests, with
/// the header `Cookie` and no prefix, or as the server expects it. There is no refresh token: the session
/// ends at its expiry, unless `extend` returns another id.
public struct SessionAuthService: AuthenticationService {
    /// The manager of the session.
    public let manager: TokenManager
    private let signIn: SignInProvider
    private let signsGuestsIn: Bool

    /// Creates a service whose session is stored in `storage` under `account`. `signIn` returns the session
    /// id as the access token, with its expiry. `extend` returns another id or expiry for an id near its
    /// expiry. `end` ends the session at the server.
    public init(
        storage: any TokenStorage, account: String,
        configuration: TokenManager.Configuration = TokenManager.Configuration(), signsGuestsIn: Bool = false,
        extend: RefreshRequestProvider? = nil, end: RevokeRequestProvider? = nil,
        signIn: @escaping SignInProvider
    ) {
        self.signIn = signIn
        self.signsGuestsIn = signsGuestsIn
        isExtended = extend != nil
        manager = TokenManager(
            storage: storage, account: account, configuration: configuration, revokeRequestProvider: end,
            refreshRequestProvider: { request in
                guard let extend else { throw RefreshFailure(.invalidGrant) }
                var response = try await extend(request)
                // The next extension is requested with the present id.
                if response.refreshToken == nil { response.refreshToken = response.accessToken }
                return response
            })
    }

    private let isExtended: Bool

    /// Always `session`.
    public var authType: AuthType { .session }

    public func login(_ request: SignInRequest) async throws {
        try await begin(request, by: signIn, signsGuestsIn: signsGuestsIn) { [isExtended] signIn in
            var signIn = signIn
            let tokens = signIn.tokens
            // The id is also the token that requests an extension.
            let refresh = isExtended ? tokens.refreshSecret ?? tokens.accessSecret : nil
            signIn.tokens = TokenInfo(
                access: tokens.accessSecret, refresh: refresh, id: nil, tokenType: tokens.tokenType,
                scope: nil,
                accessTokenExpiry: tokens.accessTokenExpiry, refreshTokenExpiry: tokens.refreshTokenExpiry)
            signIn.tokens.dpopKey = tokens.dpopKey
            return signIn
        }
    }
}
