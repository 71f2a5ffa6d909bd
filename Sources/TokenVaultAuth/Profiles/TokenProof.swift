/// A request to an API, for a proof of the key that its token is bound to (RFC 9449 section 4.2). Printing it shows no
/// token.
package struct TokenProof: Codable, Sendable, Equatable {
    /// The private key in PEM.
    package let key: String
    /// The access token.
    package let token: String
    /// The method of the request, such as `GET`.
    package let method: String
    /// The address of the request.
    package let url: String
    /// The last nonce of the API; `nil` without one.
    package let nonce: String?

    package init(key: String, token: String, method: String, url: String, nonce: String?) {
        self.key = key
        self.token = token
        self.method = method
        self.url = url
        self.nonce = nonce
    }
}

extension TokenProof: RedactedStringConvertible {}
