public import TokenVault

/// A session that the server knows by an id, as a cookie carries it, until an expiry.
///
/// The id is the access token of the ``TokenManager``: put into requests with a ``TokenAuthProvider`` whose header is
/// `Cookie` and whose prefix is none, or as the server wants it. There is no refresh token: at its end the session is over,
/// unless `extend` gives it another one.
public struct SessionAuthService: AuthenticationService {
    /// The manager of the session.
    public let manager: TokenManager
    private let signIn: SignInProvider
    private let signsGuestsIn: Bool

    /// A service whose session is kept in `storage` under `account`. `signIn` gives the session id as the access token, with
    /// its expiry. `extend` gives another id or expiry for an id that is near its end. `end` tells the server that the
    /// session is over.
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
                // The next extension is asked for with the id of now.
                if response.refreshToken == nil { response.refreshToken = response.accessToken }
                return response
            })
    }

    private let isExtended: Bool

    /// Always `session`.
    public var authType: AuthType { .session }

    /// See ``AuthenticationService/login(_:)``.
    public func login(_ request: SignInRequest) async throws {
        try await begin(request, by: signIn, signsGuestsIn: signsGuestsIn) { [isExtended] signIn in
            var signIn = signIn
            let tokens = signIn.tokens
            // What is sent to have the session extended is its id.
            let refresh = isExtended ? tokens.refreshSecret ?? tokens.accessSecret : nil
            signIn.tokens = TokenInfo(
                access: tokens.accessSecret, refresh: refresh, id: nil, tokenType: tokens.tokenType,
                scope: nil,
                accessTokenExpiry: tokens.accessTokenExpiry, refreshTokenExpiry: tokens.refreshTokenExpiry)
            return signIn
        }
    }
}
