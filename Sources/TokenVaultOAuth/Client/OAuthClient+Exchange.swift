#if OAuth
public import TokenVault

/// A kind of token, by its name in an exchange (RFC 8693 section 3).
public enum ExchangedTokenType: String, Sendable, CaseIterable {
    case accessToken = "urn:ietf:params:oauth:token-type:access_token"
    case refreshToken = "urn:ietf:params:oauth:token-type:refresh_token"
    case idToken = "urn:ietf:params:oauth:token-type:id_token"
    case jwt = "urn:ietf:params:oauth:token-type:jwt"
}

extension OAuthClient {
    /// Exchanges `token` for an access token for another service (RFC 8693 section 2.1), for example for one that the
    /// service behind an API asks for. `audience` and `resources` name that service. They are sent in addition to the
    /// resources of ``parameters``. Without `scopes`, the provider chooses them.
    ///
    /// Throws `unsupported` when the provider's metadata lists grants without this one, or the token is none that a
    /// header can carry. Throws `invalid` for a scope or a resource that cannot be used, and `requestFailed`,
    /// `malformedResponse`, `tokensNotRevoked`, `cancelled`.
    public func exchange(
        _ token: Secret, type: ExchangedTokenType = .accessToken, audience: String? = nil,
        resources: [String] = [], scopes: [String] = []
    ) async throws(OAuthError) -> SignInResult {
        let grant = "urn:ietf:params:oauth:grant-type:token-exchange"
        guard provider.grantTypesSupported?.contains(grant) ?? true else {
            throw .unsupported("token exchange")
        }
        guard let text = token.unprotectedText(), !text.isEmpty else { throw .invalid("the token") }
        var extra = RequestParameters()
        extra.resources = resources
        try extra.check()
        var form: FormEncoding.Fields = [
            ("grant_type", grant), ("subject_token", text), ("subject_token_type", type.rawValue),
            ("requested_token_type", ExchangedTokenType.accessToken.rawValue),
        ]
        if let audience { form.append(("audience", audience)) }
        form += extra.ofToken
        form += try Scopes.fields(scopes)
        let begun = clock()
        switch await ask(form) {
        case .success(let response):
            return SignInResult(
                tokens: response.tokens(begun: begun, scopes: scopes), claims: nil,
                serverDate: response.serverDate, isTokenTypeAssumed: response.tokenType == nil)
        case .failure(let failure): throw failure.signInError
        }
    }
}
#endif
