#if OAuth
public import TokenVault

extension OAuthClient {
    /// Returns the address where a browser ends the user's session at the provider (OpenID Connect RP-Initiated Logout
    /// section 2). Deleting the stored session does not sign the browser out.
    ///
    /// With `idToken`, most providers do not ask the user again. The address then contains the token: do not hand it to
    /// a program as an argument. `redirectURI` is the registered address that the browser returns to.
    ///
    /// Throws `unsupported` without such an address, `invalidMetadata` for an unusable address, and `foreignEndpoint`
    /// for one at an origin that is not allowed.
    public func endSessionAddress(
        idToken: Secret? = nil, redirectURI: String? = nil
    ) throws(OAuthError) -> String {
        let endpoint = try provider.address(
            .endSession, provider.endSessionEndpoint, for: "signing out in a browser")
        var fields: FormEncoding.Fields = [("client_id", clientID)]
        if let text = idToken?.unprotectedText() { fields.append(("id_token_hint", text)) }
        if let redirectURI { fields.append(("post_logout_redirect_uri", redirectURI)) }
        return endpoint.adding(fields)
    }
}
#endif
