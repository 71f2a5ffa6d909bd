/// An access token and the service whose token it is exchanged for (RFC 8693 section 2.1). Printing it shows no token.
package struct TokenExchange: Codable, Sendable, Equatable {
    /// The access token of the session.
    package let token: String
    /// The name of the service.
    package let audience: String?
    /// The addresses of the service.
    package let resources: [String]
    /// The scopes of the new token; empty for those that the provider chooses.
    package let scopes: [String]
    /// The private key that both tokens are bound to, in PEM; `nil` for bearer tokens.
    package let dpopKey: String?

    package init(
        token: String, audience: String?, resources: [String], scopes: [String], dpopKey: String? = nil
    ) {
        self.token = token
        self.audience = audience
        self.resources = resources
        self.scopes = scopes
        self.dpopKey = dpopKey
    }
}

extension TokenExchange: RedactedStringConvertible {}
