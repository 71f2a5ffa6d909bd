#if OAuth
public import TokenVaultAuth

/// The metadata of a provider (RFC 8414 section 2, OpenID Connect Discovery section 3). Every address in it
/// was checked: it is `https`, or `http` on this machine for a provider that is on this machine. An optional part of a fetched
/// document that cannot be used is `nil`.
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
    /// The address where requests are pushed ahead of the browser (RFC 9126 section 5).
    public let pushedAuthorizationRequestEndpoint: String?
    /// Whether the provider accepts only requests that were pushed.
    public let requiresPushedAuthorizationRequests: Bool
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
    /// The algorithms that sign proofs (RFC 9449 section 5.1); `nil` when the provider lists none.
    public let dpopSigningAlgValuesSupported: [String]?
    /// Whether the provider's answers to a browser name the provider (RFC 9207).
    public let authorizationResponseIssParameterSupported: Bool
    /// The origins, besides the issuer's, that a user may be sent to, such as `https://login.example.com`.
    /// Without this check, metadata could send the user to another provider and obtain that provider's code (RFC
    /// 9700 section 4.4). The initializer allows the origins of the endpoints that it gets.
    public var allowedOrigins: Set<RequestOrigin> = []
    /// The optional endpoints of a document whose addresses cannot be used.
    var unusable: Set<Endpoint> = []

    /// An endpoint, by what errors call it.
    enum Endpoint: String, Sendable {
        case authorization = "the authorization endpoint"
        case token = "the token endpoint"
        case deviceAuthorization = "the device authorization endpoint"
        case revocation = "the revocation endpoint"
        case keySet = "the key set's address"
        case userInfo = "the user info endpoint"
        case endSession = "the end session endpoint"
        case pushedRequest = "the pushed authorization request endpoint"
    }

    /// Creates the metadata of a provider that publishes none. Throws `invalidMetadata`, naming the part, for
    /// an address that is not `https` (or `http` on this machine, with an issuer there).
    public init(
        issuer: String, authorizationEndpoint: String? = nil, tokenEndpoint: String,
        deviceAuthorizationEndpoint: String? = nil, revocationEndpoint: String? = nil, jwksURI: String? = nil,
        userInfoEndpoint: String? = nil, endSessionEndpoint: String? = nil,
        pushedAuthorizationRequestEndpoint: String? = nil, requiresPushedAuthorizationRequests: Bool = false,
        scopesSupported: [String]? = nil,
        codeChallengeMethodsSupported: [String]? = nil, grantTypesSupported: [String]? = nil,
        tokenEndpointAuthMethodsSupported: [String]? = nil,
        idTokenSigningAlgValuesSupported: [String]? = nil, dpopSigningAlgValuesSupported: [String]? = nil,
        authorizationResponseIssParameterSupported: Bool = false
    ) throws(OAuthError) {
        guard let home = WebAddress.secure(issuer), home.query == nil else {
            throw .invalidMetadata("the issuer")
        }
        let addresses: [(Endpoint, String?)] = [
            (.authorization, authorizationEndpoint), (.token, tokenEndpoint),
            (.deviceAuthorization, deviceAuthorizationEndpoint), (.revocation, revocationEndpoint),
            (.keySet, jwksURI), (.userInfo, userInfoEndpoint), (.endSession, endSessionEndpoint),
            (.pushedRequest, pushedAuthorizationRequestEndpoint),
        ]
        for (endpoint, address) in addresses {
            guard let address else { continue }
            guard Self.isUsable(address, of: home) else { throw .invalidMetadata(endpoint.rawValue) }
        }
        allowedOrigins = Set(
            [authorizationEndpoint, deviceAuthorizationEndpoint].compactMap {
                $0.flatMap { RequestOrigin(address: $0) }
            })
        self.issuer = issuer
        self.authorizationEndpoint = authorizationEndpoint
        self.tokenEndpoint = tokenEndpoint
        self.deviceAuthorizationEndpoint = deviceAuthorizationEndpoint
        self.revocationEndpoint = revocationEndpoint
        self.jwksURI = jwksURI
        self.userInfoEndpoint = userInfoEndpoint
        self.endSessionEndpoint = endSessionEndpoint
        self.pushedAuthorizationRequestEndpoint = pushedAuthorizationRequestEndpoint
        self.requiresPushedAuthorizationRequests = requiresPushedAuthorizationRequests
        self.scopesSupported = scopesSupported
        self.codeChallengeMethodsSupported = codeChallengeMethodsSupported
        self.grantTypesSupported = grantTypesSupported
        self.tokenEndpointAuthMethodsSupported = tokenEndpointAuthMethodsSupported
        self.idTokenSigningAlgValuesSupported = idTokenSigningAlgValuesSupported
        self.dpopSigningAlgValuesSupported = dpopSigningAlgValuesSupported
        self.authorizationResponseIssParameterSupported = authorizationResponseIssParameterSupported
    }

    /// Whether the address is `https`, or `http` on this machine with an issuer there.
    static func isUsable(_ address: String, of issuer: WebAddress) -> Bool {
        guard let place = WebAddress.secure(address) else { return false }
        return place.origin.scheme == "https" || issuer.origin.isLoopback
    }

    /// Returns the address of an endpoint, which the initializer checked, for the use `what`. Throws `invalidMetadata`
    /// when the provider's document has an address that cannot be used, and `unsupported` when it has none. Throws
    /// `foreignEndpoint` for an address of another origin that is not allowed.
    func address(
        _ endpoint: Endpoint, _ address: String?, for what: String
    ) throws(OAuthError) -> WebAddress {
        guard !unusable.contains(endpoint) else { throw .invalidMetadata(endpoint.rawValue) }
        guard let address = address.flatMap(WebAddress.secure) else { throw .unsupported(what) }
        guard address.origin == RequestOrigin(address: issuer) || allowedOrigins.contains(address.origin)
        else { throw .foreignEndpoint(address.origin.text) }
        return address
    }
}
#endif
