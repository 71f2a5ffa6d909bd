/// Which client of which provider tokens were given to: they are sent to no other one.
package struct TokenSource: Codable, Hashable, Sendable {
    /// The provider's name, an address.
    package let issuer: String
    /// The name that it gave the client.
    package let clientID: String

    package init(issuer: String, clientID: String) {
        self.issuer = issuer
        self.clientID = clientID
    }
}
