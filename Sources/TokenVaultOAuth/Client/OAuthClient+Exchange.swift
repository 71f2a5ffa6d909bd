#if OAuth
public import TokenVault

/// A kind of token, by its name in an exchange (RFC 8693 section 3).
public enum ExchangedTokenType: String, Sendable, CaseIterable {
    /// An access token of OAuth 2.
    case accessToken = "urn:ietf:params:oauth:token-type:access_token"
    /// A refresh token of OAuth 2.
    case refreshToken = "urn:ietf:params:oauth:token-type:refresh_token"
    /// An ID token of OpenID Connect.
    case idToken = "urn:ietf:params:oauth:token-type:id_token"
    /// A JSON Web Token of any issuer.
    case jwt = "urn:ietf:params:oauth:token-type:jwt"
}

extension OAuthClient {
    /// Exchanges `token` for an access token of another service (RFC 8693 section 2.1), and returns it. An API can use
    /// it to call a second API. `audience` and `resources` name that service; nothing of ``parameters`` is sent.
    /// Without `scopes`, the provider chooses them. With `dpopKey`, both tokens are bound to that key.
    ///
    /// Throws `unsupported` if the metadata lists grants without this grant, or if the new token has another type. That
    /// type is `DPoP` with `dpopKey`, else bearer. Throws `invalid` for an empty token, or a scope or resource that cannot be used. Also throws
    /// `requestFailed`, `malformedResponse`, `tokensNotRevoked`, `cancelled`.
    public func exchange(
        _ token: Secret, type: ExchangedTokenType = .accessToken, audience: String? = nil,
        resources: [String] = [], scopes: [String] = [], dpopKey: DPoPKey? = nil
    ) async throws(OAuthError) -> SignInResult {
        let grantType = "urn:ietf:params:oauth:grant-type:token-exchange"
        guard provider.grantTypesSupported?.contains(grantType) ?? true else {
            throw .unsupported("token exchange")
        }
        guard let text = token.unprotectedText(), !text.isEmpty else { throw .invalid("the token") }
        var extra = RequestParameters()
        extra.resources = resources
        try extra.check()
        var form: FormEncoding.Fields = [
            ("grant_type", grantType), ("subject_token", text), ("subject_token_type", type.rawValue),
            ("requested_token_type", ExchangedTokenType.accessToken.rawValue),
        ]
        if let audience { form.append(("audience", audience)) }
        form += extra.ofToken
        form += try Scopes.fields(scopes)
        let begun = clock()
        let response = try await grant(form, dpopKey: dpopKey)
        return response.result(response.tokens(begun: begun, scopes: scopes))
    }
}
#endif
