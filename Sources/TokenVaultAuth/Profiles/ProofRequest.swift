/// The parts of an API request that a proof is signed for (RFC 9449 section 4.2). Printing this value shows neither the
/// key nor the token.
package struct ProofRequest: Codable, Sendable, Equatable {
    /// The private key in PEM.
    package let key: String
    /// The access token.
    package let token: String
    package let target: ProofTarget

    package init(key: String, token: String, target: ProofTarget) {
        self.key = key
        self.token = token
        self.target = target
    }
}

extension ProofRequest: RedactedStringConvertible {}

/// The API request that a proof is for.
package struct ProofTarget: Codable, Sendable, Equatable {
    /// The method of the request, such as `GET`.
    package let method: String
    /// The address of the request.
    package let url: String
    /// The last nonce from the API's server; `nil` if the server sent none.
    package let nonce: String?

    package init(method: String, url: String, nonce: String?) {
        self.method = method
        self.url = url
        self.nonce = nonce
    }

    /// Whether a proof can contain `text` as its nonce (RFC 9449 section 8.1). A nonce has at most 2,048 bytes.
    package static func isNonce(_ text: String) -> Bool {
        (1...2_048).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
    }
}
