#if OAuth
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A metadata document in its published form.
struct MetadataDocument: Codable {
    var issuer: String
    var authorizationEndpoint: String?
    var tokenEndpoint: String?
    var deviceAuthorizationEndpoint: String?
    var revocationEndpoint: String?
    var jwksURI: String?
    var userInfoEndpoint: String?
    var endSessionEndpoint: String?
    var pushedAuthorizationRequestEndpoint: String?
    var requiresPushedAuthorizationRequests: Bool?
    var scopesSupported: [String]?
    var codeChallengeMethodsSupported: [String]?
    var grantTypesSupported: [String]?
    var tokenEndpointAuthMethodsSupported: [String]?
    var idTokenSigningAlgValuesSupported: [String]?
    var dpopSigningAlgValuesSupported: [String]?
    var authorizationResponseIssParameterSupported: Bool?
    /// In a stored document, the endpoints whose addresses could not be used.
    var unusableEndpoints: [String]?
    /// In a stored document, the origins that the user may be sent to. Ignored in a fetched document.
    var allowedOrigins: [String]?

    private enum CodingKeys: String, CodingKey {
        case issuer
        case authorizationEndpoint = "authorization_endpoint"
        case tokenEndpoint = "token_endpoint"
        case deviceAuthorizationEndpoint = "device_authorization_endpoint"
        case revocationEndpoint = "revocation_endpoint"
        case jwksURI = "jwks_uri"
        case userInfoEndpoint = "userinfo_endpoint"
        case endSessionEndpoint = "end_session_endpoint"
        case pushedAuthorizationRequestEndpoint = "pushed_authorization_request_endpoint"
        case requiresPushedAuthorizationRequests = "require_pushed_authorization_requests"
        case scopesSupported = "scopes_supported"
        case codeChallengeMethodsSupported = "code_challenge_methods_supported"
        case grantTypesSupported = "grant_types_supported"
        case tokenEndpointAuthMethodsSupported = "token_endpoint_auth_methods_supported"
        case idTokenSigningAlgValuesSupported = "id_token_signing_alg_values_supported"
        case dpopSigningAlgValuesSupported = "dpop_signing_alg_values_supported"
        case authorizationResponseIssParameterSupported = "authorization_response_iss_parameter_supported"
        case unusableEndpoints = "tokenvault_unusable_endpoints"
        case allowedOrigins = "tokenvault_allowed_origins"
    }

    /// Returns the metadata in `body` if it belongs to `issuer`. Throws `invalidMetadata`, `issuerDiffers`.
    static func metadata(in body: [UInt8], of issuer: String) throws(OAuthError) -> ProviderMetadata {
        guard let document = try? JSONDecoder().decode(Self.self, from: Data(body)) else {
            throw .invalidMetadata("the document")
        }
        // RFC 8414 section 3.3: without an identical issuer, a provider could speak for another.
        guard document.issuer.utf8.elementsEqual(issuer.utf8) else {
            throw .issuerDiffers(difference(document.issuer, from: issuer))
        }
        return try document.metadata()
    }

    /// Returns a difference that users overlook when they copy an issuer's address.
    private static func difference(_ found: String, from asked: String) -> IssuerDifference {
        if found.contains("{tenantid}") { return .tenantPlaceholder }
        if found.utf8.elementsEqual("\(asked)/".utf8) { return .slashInMetadata }
        if asked.utf8.elementsEqual("\(found)/".utf8) { return .slashInIssuer }
        return .otherName
    }

    /// Returns the checked metadata, without the optional addresses that cannot be used. Throws `invalidMetadata` for the
    /// issuer and the token endpoint.
    func metadata() throws(OAuthError) -> ProviderMetadata {
        guard let tokenEndpoint else { throw .invalidMetadata("the token endpoint") }
        guard let home = WebAddress.secure(issuer) else { throw .invalidMetadata("the issuer") }
        var unusable = Set((unusableEndpoints ?? []).compactMap(ProviderMetadata.Endpoint.init(rawValue:)))
        func usable(_ address: String?, _ endpoint: ProviderMetadata.Endpoint) -> String? {
            guard let address, !ProviderMetadata.isUsable(address, of: home) else { return address }
            unusable.insert(endpoint)
            return nil
        }
        var metadata = try ProviderMetadata(
            issuer: issuer, authorizationEndpoint: usable(authorizationEndpoint, .authorization),
            tokenEndpoint: tokenEndpoint,
            deviceAuthorizationEndpoint: usable(deviceAuthorizationEndpoint, .deviceAuthorization),
            revocationEndpoint: usable(revocationEndpoint, .revocation), jwksURI: usable(jwksURI, .keySet),
            userInfoEndpoint: usable(userInfoEndpoint, .userInfo),
            endSessionEndpoint: usable(endSessionEndpoint, .endSession),
            pushedAuthorizationRequestEndpoint: usable(pushedAuthorizationRequestEndpoint, .pushedRequest),
            requiresPushedAuthorizationRequests: requiresPushedAuthorizationRequests ?? false,
            scopesSupported: scopesSupported,
            codeChallengeMethodsSupported: codeChallengeMethodsSupported,
            grantTypesSupported: grantTypesSupported,
            tokenEndpointAuthMethodsSupported: tokenEndpointAuthMethodsSupported,
            idTokenSigningAlgValuesSupported: idTokenSigningAlgValuesSupported,
            dpopSigningAlgValuesSupported: dpopSigningAlgValuesSupported,
            authorizationResponseIssParameterSupported: authorizationResponseIssParameterSupported ?? false)
        metadata.unusable = unusable
        metadata.allowedOrigins = Set((allowedOrigins ?? []).compactMap { RequestOrigin(address: $0) })
        return metadata
    }
}

extension MetadataDocument {
    /// Reads the members one by one: an optional one of another type counts as absent, an address as unusable. Those of which a
    /// sign-in is safe only with the right value have to be of their type.
    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func address(_ key: CodingKeys) -> String? {
            guard let isNull = try? values.decodeNil(forKey: key), !isNull else { return nil }
            return (try? values.decode(String.self, forKey: key)) ?? ""
        }
        func list(_ key: CodingKeys) -> [String]? { try? values.decode([String].self, forKey: key) }
        self.init(
            issuer: try values.decode(String.self, forKey: .issuer),
            authorizationEndpoint: address(.authorizationEndpoint), tokenEndpoint: address(.tokenEndpoint),
            deviceAuthorizationEndpoint: address(.deviceAuthorizationEndpoint),
            revocationEndpoint: address(.revocationEndpoint), jwksURI: address(.jwksURI),
            userInfoEndpoint: address(.userInfoEndpoint), endSessionEndpoint: address(.endSessionEndpoint),
            pushedAuthorizationRequestEndpoint: address(.pushedAuthorizationRequestEndpoint),
            requiresPushedAuthorizationRequests: try? values.decode(
                Bool.self, forKey: .requiresPushedAuthorizationRequests),
            scopesSupported: list(.scopesSupported),
            codeChallengeMethodsSupported: try values.decodeIfPresent(
                [String].self, forKey: .codeChallengeMethodsSupported),
            grantTypesSupported: list(.grantTypesSupported),
            tokenEndpointAuthMethodsSupported: list(.tokenEndpointAuthMethodsSupported),
            idTokenSigningAlgValuesSupported: list(.idTokenSigningAlgValuesSupported),
            dpopSigningAlgValuesSupported: list(.dpopSigningAlgValuesSupported),
            authorizationResponseIssParameterSupported: try values.decodeIfPresent(
                Bool.self, forKey: .authorizationResponseIssParameterSupported),
            unusableEndpoints: list(.unusableEndpoints), allowedOrigins: list(.allowedOrigins))
    }
}

/// Encoded as the document that a provider publishes (RFC 8414 section 3.2), so that a program can store it.
extension ProviderMetadata: Codable {
    /// Reads the metadata with the same checks as fetched metadata. Throws the errors of `decoder`, and
    /// ``OAuthError/invalidMetadata(_:)``.
    public init(from decoder: any Decoder) throws {
        self = try MetadataDocument(from: decoder).metadata()
    }

    /// Writes the metadata. Throws the errors of `encoder`.
    public func encode(to encoder: any Encoder) throws {
        try MetadataDocument(
            issuer: issuer, authorizationEndpoint: authorizationEndpoint, tokenEndpoint: tokenEndpoint,
            deviceAuthorizationEndpoint: deviceAuthorizationEndpoint, revocationEndpoint: revocationEndpoint,
            jwksURI: jwksURI, userInfoEndpoint: userInfoEndpoint, endSessionEndpoint: endSessionEndpoint,
            pushedAuthorizationRequestEndpoint: pushedAuthorizationRequestEndpoint,
            requiresPushedAuthorizationRequests: requiresPushedAuthorizationRequests ? true : nil,
            scopesSupported: scopesSupported,
            codeChallengeMethodsSupported: codeChallengeMethodsSupported,
            grantTypesSupported: grantTypesSupported,
            tokenEndpointAuthMethodsSupported: tokenEndpointAuthMethodsSupported,
            idTokenSigningAlgValuesSupported: idTokenSigningAlgValuesSupported,
            dpopSigningAlgValuesSupported: dpopSigningAlgValuesSupported,
            authorizationResponseIssParameterSupported: authorizationResponseIssParameterSupported,
            unusableEndpoints: unusable.isEmpty ? nil : unusable.map(\.rawValue).sorted(),
            allowedOrigins: allowedOrigins.isEmpty ? nil : allowedOrigins.map(\.text).sorted()
        ).encode(to: encoder)
    }
}
#endif
