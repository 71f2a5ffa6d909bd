#if OAuth
public import TokenVault
public import TokenVaultAuth

extension OAuthClient {
    /// Renews tokens (RFC 6749 section 6), for a ``TokenVaultAuth/TokenManager``. It throws
    /// ``TokenVaultAuth/RefreshFailure``.
    ///
    /// A new ID token has to be of the same issuer, person and client as the one before (OpenID Connect Core section 12.2):
    /// otherwise the answer is `refused("id_token_mismatch")` and nothing of it is used. One that cannot be checked for
    /// another reason, such as a key set that cannot be reached, is left out, and the tokens are kept: a rotated refresh
    /// token must not be lost.
    public var refreshRequestProvider: RefreshRequestProvider {
        { request in try await refresh(request) }
    }

    /// Revokes the refresh token, then the access token (RFC 7009 section 2.1); `nil` when the provider has no endpoint for
    /// that. It throws ``TokenVaultAuth/RefreshFailure``.
    public var revokeRequestProvider: RevokeRequestProvider? {
        guard let endpoint = provider.revocationEndpoint.flatMap(WebAddress.secure) else { return nil }
        return { tokens in try await revoke(tokens, at: endpoint) }
    }

    /// A manager of an account's tokens that refreshes and revokes with this client. Its clock is this client's.
    public func tokenManager(
        storage: any TokenStorage, account: String,
        configuration: TokenManager.Configuration = TokenManager.Configuration()
    ) -> TokenManager {
        TokenManager(
            storage: storage, account: account, configuration: configuration,
            revokeRequestProvider: revokeRequestProvider, refreshRequestProvider: refreshRequestProvider)
    }

    private func refresh(_ request: RefreshRequest) async throws(RefreshFailure) -> TokenRefreshResponse {
        let form: FormEncoding.Fields = [
            ("grant_type", "refresh_token"), ("refresh_token", request.refreshToken),
        ]
        let response: TokenResponse
        switch await ask(form) {
        case .success(let success): response = success
        case .failure(.failed(let failure)): throw failure
        case .failure(.useless): throw RefreshFailure(.interrupted)
        }
        return TokenRefreshResponse(
            accessToken: response.accessToken, expiresIn: response.expiresIn,
            refreshToken: response.refreshToken, refreshTokenExpiresIn: response.refreshTokenExpiresIn,
            idToken: try await renewedIDToken(response, after: request), tokenType: "Bearer",
            scope: response.scope, serverDate: response.serverDate)
    }

    private func renewedIDToken(
        _ response: TokenResponse, after request: RefreshRequest
    ) async throws(RefreshFailure) -> String? {
        guard let idToken = response.idToken else { return nil }
        guard let previous = request.idToken.flatMap({ IDTokenClaims(unverified: $0) }) else {
            return await isValid(idToken, response) ? idToken : nil
        }
        guard let claims = IDTokenClaims(unverified: idToken) else { return nil }
        guard claims.isContinuation(of: previous) else {
            throw RefreshFailure(.refused("id_token_mismatch"), serverDate: response.serverDate)
        }
        return await isValid(idToken, response) ? idToken : nil
    }

    private func isValid(_ idToken: String, _ response: TokenResponse) async -> Bool {
        do throws(OAuthError) {
            _ = try await idTokenValidator.validate(
                idToken, expecting: IDTokenExpectation(accessToken: response.accessToken),
                serverDate: response.serverDate)
            return true
        } catch {
            return false
        }
    }

    private func revoke(_ tokens: TokenInfo, at endpoint: WebAddress) async throws(RefreshFailure) {
        var failure: RefreshFailure?
        // The refresh token first: most providers end the whole session with it.
        if let token = tokens.refreshToken {
            failure = await revoke(token, hint: "refresh_token", at: endpoint)
        }
        let second = await revoke(tokens.accessToken, hint: "access_token", at: endpoint)
        // A provider may have no way to revoke access tokens (RFC 7009 section 2.2.1).
        if failure == nil, let second, second.kind != .refused("unsupported_token_type") { failure = second }
        if let failure { throw failure }
    }

    private func revoke(_ token: String, hint: String, at endpoint: WebAddress) async -> RefreshFailure? {
        let form: FormEncoding.Fields = [("token", token), ("token_type_hint", hint)]
        switch await transport.post(
            form + authentication.fields(of: clientID), to: endpoint,
            authorization: authentication.header(of: clientID))
        {
        case .failure(let failure): return failure
        // 200 also for a token the provider does not know.
        case .success(let answer) where answer.status == 200: return nil
        case .success(let answer): return TokenEndpointFailure.failure(of: answer)
        }
    }
}
#endif
