/// A client's way to authenticate, by its name in a provider's metadata (RFC 7591 section 2).
package enum ClientAuthenticationMethod: String, Codable, Sendable {
    /// Only the client's name.
    case none
    /// The secret in the `Authorization` header.
    case basic = "client_secret_basic"
    /// The secret in the form.
    case post = "client_secret_post"
    /// An assertion, signed with the client's key.
    case privateKeyJWT = "private_key_jwt"
    /// Apple's client secret, signed with the client's key. The metadata has no name for this method.
    case appleSecret = "apple"
}

/// The values that authenticate a client, besides its secret. Printing them shows no secret.
package struct ClientIdentity: Codable, Sendable, Equatable {
    /// The chosen method; `nil` to choose by these values and the provider's metadata.
    package var method: ClientAuthenticationMethod?
    /// The private key in PEM.
    package var key: String?
    /// The name of the key at the provider.
    package var keyID: String?
    /// The identifier of the developer team at Apple.
    package var teamID: String?

    package init() {}
}

extension ClientIdentity: RedactedStringConvertible {}
