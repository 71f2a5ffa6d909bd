#if OAuth
internal import NIOHTTP1
internal import TokenVaultAuth

extension ProviderMetadata {
    /// The places where a provider publishes its metadata, in the order of ``discover(issuer:at:allowing:transport:)``. For an issuer
    /// without a path the last two are the first two.
    public enum WellKnown: Sendable, CaseIterable {
        /// `/.well-known/openid-configuration` behind the issuer's path (OpenID Connect Discovery section 4).
        case openIDConfiguration
        /// `/.well-known/oauth-authorization-server` before the issuer's path (RFC 8414 section 3.1).
        case oauthAuthorizationServer
        /// `/.well-known/openid-configuration` before the issuer's path (RFC 8414 section 5).
        case openIDConfigurationBeforePath
        /// `/.well-known/oauth-authorization-server` behind the issuer's path, where some providers have it.
        case oauthAuthorizationServerBehindPath
    }

    /// Fetches the provider's metadata. Tries the next place after any 4xx but 429, and after a document that cannot be
    /// used. Throws the error of the first such document when no other place has a usable one.
    ///
    /// A sign-in throws `foreignEndpoint` if the metadata sends the user to an origin other than the issuer's and those
    /// in `origins`, such as `https://login.example.com`. The document's issuer has to equal `issuer`, byte for byte.
    /// An optional part that cannot be used is left out; what needs it throws `invalidMetadata` then. Throws `invalid`
    /// for an issuer that is not `https` (or `http` on this machine), or that has a query or an unusable path. Also
    /// throws `invalid` for an entry of `origins` that is not an origin. Throws `invalidMetadata`, `issuerDiffers`,
    /// `redirected`, `requestFailed`, `malformedResponse`, `cancelled`, and `unsupported` when there is no metadata.
    public static func discover(
        issuer: String, at places: [WellKnown] = WellKnown.allCases, allowing origins: [String] = [],
        transport: OAuthTransport
    ) async throws(OAuthError) -> ProviderMetadata {
        guard let home = WebAddress.secure(issuer), home.query == nil, RedirectAddress.isPath(home.path)
        else { throw .invalid("the issuer") }
        let allowed = origins.compactMap { RequestOrigin(address: $0) }
        guard allowed.count == origins.count else { throw .invalid("an allowed origin") }
        var firstProblem: OAuthError?
        var asked: Set<String> = []
        for place in places {
            guard let address = WebAddress.secure(place.address(of: home)) else {
                throw .invalid("the issuer")
            }
            guard asked.insert(address.text).inserted else { continue }
            let answer: OAuthTransport.Answer
            do throws(RefreshFailure) { answer = try await transport.get(address) } catch {
                throw Task.isCancelled ? .cancelled : .requestFailed(error)
            }
            switch answer.status {
            case 200:
                do throws(OAuthError) {
                    var metadata = try MetadataDocument.metadata(in: answer.body, of: issuer)
                    metadata.allowedOrigins = Set(allowed)
                    return metadata
                } catch {
                    firstProblem = firstProblem ?? error
                }
            case 301, 302, 303, 307, 308: throw .redirected(to: answer.redirection(from: address))
            case 429, 500...599: throw .requestFailed(TokenEndpointFailure.failure(of: answer))
            case 400...499: continue
            default: throw .malformedResponse("the status")
            }
        }
        throw firstProblem ?? .unsupported("metadata at this issuer")
    }
}

extension OAuthTransport.Answer {
    /// Returns the address of the `Location` header, if it is one that can be asked, and short enough to be shown (RFC 9110
    /// section 10.2.2).
    fileprivate func redirection(from address: WebAddress) -> String? {
        guard let location = headers.first(name: "Location"), location.utf8.count <= 400 else { return nil }
        let isPath = location.hasPrefix("/") && !location.hasPrefix("//")
        return WebAddress.secure(isPath ? address.root + location : location)?.text
    }
}

extension ProviderMetadata.WellKnown {
    func address(of issuer: WebAddress) -> String {
        let path = issuer.path.hasSuffix("/") ? String(issuer.path.dropLast()) : issuer.path
        let root = issuer.root
        return switch self {
        case .openIDConfiguration: "\(root)\(path)/.well-known/openid-configuration"
        case .oauthAuthorizationServer: "\(root)/.well-known/oauth-authorization-server\(path)"
        case .openIDConfigurationBeforePath: "\(root)/.well-known/openid-configuration\(path)"
        case .oauthAuthorizationServerBehindPath: "\(root)\(path)/.well-known/oauth-authorization-server"
        }
    }
}
#endif
