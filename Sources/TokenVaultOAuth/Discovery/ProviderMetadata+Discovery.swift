#if OAuth
internal import TokenVaultAuth

extension ProviderMetadata {
    /// The places where a provider publishes its metadata.
    public enum WellKnown: Sendable, CaseIterable {
        /// `/.well-known/openid-configuration` behind the issuer's path (OpenID Connect Discovery section 4).
        case openIDConfiguration
        /// `/.well-known/oauth-authorization-server` before the issuer's path (RFC 8414 section 3.1).
        case oauthAuthorizationServer
    }

    /// Fetches the provider's metadata. Tries the second place when there is nothing at the first.
    ///
    /// The document's issuer has to equal `issuer`, byte for byte. Throws `invalid` for an issuer that is not
    /// `https` (or `http` on this machine), or that has a query. Throws `invalidMetadata`, `requestFailed`,
    /// `malformedResponse`, and `unsupported` when there is no metadata.
    public static func discover(
        issuer: String, at places: [WellKnown] = WellKnown.allCases, transport: OAuthTransport
    ) async throws(OAuthError) -> ProviderMetadata {
        guard let home = WebAddress.secure(issuer), home.query == nil else { throw .invalid("the issuer") }
        for place in places {
            guard let address = WebAddress.secure(place.address(of: home)) else {
                throw .invalid("the issuer")
            }
            let answer: OAuthTransport.Answer
            switch await transport.get(address) {
            case .success(let success): answer = success
            case .failure(let failure): throw Task.isCancelled ? .cancelled : .requestFailed(failure)
            }
            switch answer.status {
            case 200: return try MetadataDocument.metadata(in: answer.body, of: issuer)
            case 404, 410: continue
            case 429, 500...599: throw .requestFailed(TokenEndpointFailure.failure(of: answer))
            default: throw .malformedResponse("the status")
            }
        }
        throw .unsupported("metadata at this issuer")
    }
}

extension ProviderMetadata.WellKnown {
    func address(of issuer: WebAddress) -> String {
        let path = issuer.path.hasSuffix("/") ? String(issuer.path.dropLast()) : issuer.path
        let root = issuer.text.dropLast(issuer.path.utf8.count)
        return switch self {
        case .openIDConfiguration: "\(root)\(path)/.well-known/openid-configuration"
        case .oauthAuthorizationServer: "\(root)/.well-known/oauth-authorization-server\(path)"
        }
    }
}
#endif
