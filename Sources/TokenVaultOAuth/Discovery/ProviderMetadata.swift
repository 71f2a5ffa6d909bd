#if OAuth
internal import TokenVaultAuth

/// The metadata of a provider (RFC 8414 section 2, OpenID Connect Discovery section 3). Every address in it
/// was checked: it is `https`, or `http` on this machine for a provider that is on this machine.
public struct ProviderMetadata: Sendable, Equatable {
    /// The provider's name, an address; its tokens and answers have the same name.
    public let issuer: String
    /// The address for the user's browser (RFC 6749 section 3.1).
    public let authorizationEndpoint: String?
    /// The address of token requests (RFC 6749 section 3.2).
    public let tokenEndpoint: String
    /// The address where a device requests a user code (RFC 8628 section 3.1).
    public let deviceAuthorizationEndpoint: String?
    /// The address where tokens are revoked (RFC 7009 section 2).
    public let revocationEndpoint: String?
    /// The address of the keys that sign ID tokens (RFC 7517 section 5).
    public let jwksURI: String?
    /// The address of user information (OpenID Connect Core section 5.3).
    public let userInfoEndpoint: String?
    /// The browser address for signing out (OpenID Connect RP-Initiated Logout).
    public let endSessionEndpoint: String?
    /// The scopes of the provider; `nil` when it lists none.
    public let scopesSupported: [String]?
    /// The PKCE methods of the provider; `nil` when it lists none.
    public let codeChallengeMethodsSupported: [String]?
    /// The grants of the provider; `nil` when it lists none.
    public let grantTypesSupported: [String]?
    /// The authentication methods for clients; `nil` when the provider lists none.
    public let tokenEndpointAuthMethodsSupported: [String]?
    /// The algorithms that sign ID tokens; `nil` when the provider lists none.
    public let idTokenSigningAlgValuesSupported: [String]?
    /// Whether the provider's answers to a browser name the provider (RFC 9207).
    public let authorizationResponseIssParameterSupported: Bool

    /// Creates the metadata of a provider that publishes none. Throws `invalidMetadata`, naming the part, for
    /// an address that is not `https` (or `http` on this machine, with an issuer there).
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

    /// Returns the endpoint `address`, which the initializer checked. Throws `unsupported` when there is
    /// none.
    func endpoint(_ address: String?, for what: String) throws(OAuthError) -> WebAddress {
        guard let address = address.flatMap(WebAddress.secure) else { throw .unsupported(what) }
        return address
    }
}
#endif
