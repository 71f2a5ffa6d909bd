import Foundation
import TokenVault
import TokenVaultAuth

/// The server of this example, in the same process. A real app sends these requests with its HTTP client.
actor DemoServer {
    /// A refusal of a sign-in.
    struct Refused: Error {}

    private var accounts = ["alice": "not a real password"]
    private var accessTokens: Set<String> = []
    private var refreshTokens: Set<String> = []

    /// Signs in with a name and a password.
    func signIn(_ request: SignInRequest) throws -> SignIn {
        guard let name = request.userName, let password = accounts[name],
            request.credential == Secret(utf8: password)
        else { throw Refused() }
        let response = issue()
        return SignIn(
            tokens: TokenInfo(
                accessToken: response.accessToken, refreshToken: response.refreshToken,
                accessTokenExpiry: Date().addingTimeInterval(response.expiresIn ?? 0)),
            user: AuthUser(identifier: name, name: name.capitalized))
    }

    /// Signs in with another provider's assertion, which has to repeat the digest of `nonce`.
    func signIn(assertion digest: String, nonce: String) throws -> SignIn {
        guard digest == SignInNonce.sha256(nonce) else { throw Refused() }
        return try signIn(
            SignInRequest(
                provider: .password, userName: "alice",
                credential: accounts["alice"].map { Secret(utf8: $0) }))
    }

    /// Exchanges a refresh token, once.
    func refresh(_ request: RefreshRequest) throws -> TokenRefreshResponse {
        guard refreshTokens.remove(request.refreshToken) != nil else { throw RefreshFailure(.invalidGrant) }
        return issue()
    }

    /// Ends a session.
    func revoke(_ tokens: TokenInfo) {
        accessTokens.remove(tokens.accessToken)
        if let refreshToken = tokens.refreshToken { refreshTokens.remove(refreshToken) }
    }

    /// Deletes the account that the token belongs to.
    func deleteAccount(_ token: AccessToken) throws {
        guard accessTokens.contains(token.text) else { throw Refused() }
        accounts = [:]
        accessTokens = []
        refreshTokens = []
    }

    private func issue() -> TokenRefreshResponse {
        let (access, refresh) = (SignInNonce.randomNonceString(), SignInNonce.randomNonceString())
        accessTokens.insert(access)
        refreshTokens.insert(refresh)
        return TokenRefreshResponse(accessToken: access, expiresIn: 3_600, refreshToken: refresh)
    }
}
