/// The provider and the client that tokens were issued to. The tokens are used with no other client or
/// provider.
package struct TokenSource: Codable, Hashable, Sendable {
    /// The provider's name, an address.
    package let issuer: String
    /// The name that the provider gave the client.
    package let clientID: String

    package init(issuer: String, clientID: String) {
        self.issuer = issuer
        self.clientID = clientID
    }
}
