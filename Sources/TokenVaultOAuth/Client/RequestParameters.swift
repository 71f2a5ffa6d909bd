#if OAuth
internal import TokenVaultAuth

/// Extra parameters of a client's requests, beyond those that the client sets itself.
///
/// Names are visible ASCII. They may not be names that the client sets itself, such as `client_id`, `scope`
/// and `resource`. `response_mode` can be `query` or `form_post`.
public struct RequestParameters: Sendable, Equatable {
    /// The services that the tokens are for: absolute URIs, in each authorization, device and token request
    /// (RFC 8707 section 2).
    public var resources: [String] = []
    /// The parameters of authorization and device requests, such as `audience` or `prompt`.
    public var authorization: [String: String] = [:]
    /// The parameters of token requests: for a code, a device code, a refresh token, or the client's own
    /// credentials.
    public var token: [String: String] = [:]

    /// Creates no parameters.
    public init() {}

    /// Returns the fields of authorization and device requests.
    var ofAuthorization: FormEncoding.Fields { Self.fields(authorization) + ofResources }

    /// Returns the fields of token requests.
    var ofToken: FormEncoding.Fields { Self.fields(token) + ofResources }

    private var ofResources: FormEncoding.Fields { resources.map { ("resource", $0) } }

    private static func fields(_ parameters: [String: String]) -> FormEncoding.Fields {
        parameters.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Throws `invalid` for parameters that cannot be used.
    func check() throws(OAuthError) {
        guard authorization.keys.allSatisfy(SignInSettings.isParameter),
            token.keys.allSatisfy(SignInSettings.isParameter),
            authorization.allSatisfy({ SignInSettings.isValue($0.value, of: $0.key) })
        else { throw .invalid("a parameter") }
        guard resources.allSatisfy(SignInSettings.isResource) else { throw .invalid("a resource") }
    }
}
#endif
