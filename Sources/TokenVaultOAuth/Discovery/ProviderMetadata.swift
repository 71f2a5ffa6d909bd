#if OAuth
internal import TokenVaultAuth

/// What a provider says of itself (RFC 8414 section 2, OpenID Connect Discovery section 3). Every address in it was looked
/// at: it is `https`, or `http` of this machine for a provider that is on this machine itself.
public struct ProviderMetadata: Sendable, Equatable {
    /// The provider's name, an address; tokens and answers of it say the same.
    public let issuer: String
    /// Where a person's browser is sent (RFC 6749 section 3.1).
    public let authorizationEndpoint: String?
    /// Where tokens are asked for (RFC 6749 section 3.2).
    public let tokenEndpoint: String
    /// Where a device asks for a user's code (RFC 8628 section 3.1).
    public let deviceAuthorizationEndpoint: String?
    /// Where tokens are revoked (RFC 7009 section 2).
    public let revocationEndpoint: String?
    /// The keys that ID tokens are signed with (RFC 7517 section 5).
    public let jwksURI: String?
    /// Where what is known of a person is asked for (OpenID Connect Core section 5.3).
    public let userInfoEndpoint: String?
    /// Where a browser is sent to sign out (OpenID Connect RP-Initiated Logout).
    public let endSessionEndpoint: String?
    /// The scopes the provider names; `nil` when it names none.
    public let scopesSupported: [String]?
    /// The PKCE methods it takes; `nil` when it does not say.
    public let codeChallengeMethodsSupported: [String]?
    /// The grants it gives; `nil` when it does not say.
    public let grantTypesSupported: [String]?
    /// How clients may authenticate; `nil` when it does not say.
    public let tokenEndpointAuthMethodsSupported: [String]?
    /// The algorithms it signs ID tokens with; `nil` when it does not say.
    public let idTokenSigningAlgValuesSupported: [String]?
    /// Whether its answers to a browser name it (RFC 9207).
    public let authorizationResponseIssParameterSupported: Bool

    /// The metadata of a provider that publishes none. Throws `invalidMetadata`, naming the part, for an address that is
    /// not `https` (nor `http` of this machine, with an issuer there).
    public init(
        issuer: String, authorizationEndpoint: String? = nil, tokenEndpoint: String,
        deviceAuthorizationEndpoint: String? = nil, revocationEndpoint: String? = nil, jwksURI: String? = nil,
        userInfoEndpoint: String? = nil, endSessionEndpoint: String? = nil, scopesSupported: [String]? = nil,
        codeChallengeMethodsSupported: [String]? = nil, grantTypesSupported: [String]? = nil,
        tokenEndpointAuthMethodsSupported: [String]? = nil,
        idTokenSigningAlgValuesSupported: [String]? = nil,
        authorizationResponseIssParameterSupported: Bool = false
    ) throws(OAuthError) {
        guard let home = WebAddress.secure(issuer), home.query == nil else {
            throw .invalidMetadata("the issuer")
        }
        let addresses: [(String, String?)] = [
            ("the authorization endpoint", authorizationEndpoint), ("the token endpoint", tokenEndpoint),
            ("the device authorization endpoint", deviceAuthorizationEndpoint),
            ("the revocation endpoint", revocationEndpoint), ("the key set's address", jwksURI),
            ("the user info endpoint", userInfoEndpoint), ("the end session endpoint", endSessionEndpoint),
        ]
        for (name, address) in addresses {
            guard let address else { continue }
            guard let place = WebAddress.secure(address),
                place.origin.scheme == "https" || home.origin.isLoopback
            else { throw .invalidMetadata(name) }
        }
        self.issuer = issuer
        self.authorizationEndpoint = authorizationEndpoint
        self.tokenEndpoint = tokenEndpoint
        self.deviceAuthorizationEndpoint = deviceAuthorizationEndpoint
        self.revocationEndpoint = revocationEndpoint
        self.jwksURI = jwksURI
        self.userInfoEndpoint = userInfoEndpoint
        self.endSessionEndpoint = endSessionEndpoint
        self.scopesSupported = scopesSupported
        self.codeChallengeMethodsSupported = codeChallengeMethodsSupported
        self.grantTypesSupported = grantTypesSupported
        self.tokenEndpointAuthMethodsSupported = tokenEndpointAuthMethodsSupported
        self.idTokenSigningAlgValuesSupported = idTokenSigningAlgValuesSupported
        self.authorizationResponseIssParameterSupported = authorizationResponseIssParameterSupported
    }

    /// The endpoint `address`, which the initializer looked at. Throws `unsupported` when there is none.
    func endpoint(_ address: String?, for what: String) throws(OAuthError) -> WebAddress {
        guard let address = address.flatMap(WebAddress.secure) else { throw .unsupported(what) }
        return address
    }
}
#endif
