/// The addresses of a provider that publishes no metadata (RFC 8414).
package struct ProviderEndpoints: Codable, Sendable, Equatable {
    /// The address for the user's browser; `nil` without sign-in in a browser.
    package var authorization: String?
    /// The address of token requests.
    package var token: String
    /// The address where a device requests a user code; `nil` without the device grant.
    package var deviceAuthorization: String?
    /// The address where tokens are revoked; `nil` without revocation.
    package var revocation: String?
    /// The names of the client authentication methods, as in metadata; `nil` for the usual one.
    package var authenticationMethods: [String]?

    package init(token: String) { self.token = token }
}
