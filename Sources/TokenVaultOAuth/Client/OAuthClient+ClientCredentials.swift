#if OAuth
internal import TokenVaultAuth

extension OAuthClient {
    /// Gets tokens for the client itself, without a user (RFC 6749 section 4.4). Throws `unsupported` for a
    /// client without a secret, and `requestFailed`, `malformedResponse`, `tokensNotRevoked`, `cancelled`.
    public func clientCredentials(scopes: [String] = []) async throws(OAuthError) -> SignInResult {
        guard authentication != .none else { throw .unsupported("client credentials without a secret") }
        let begun = clock()
        let form = [(name: "grant_type", value: "client_credentials")] + (try Scopes.fields(scopes))
        switch await ask(form) {
        case .success(let response):
            // No user signed in, so an ID token would say nothing.
            return SignInResult(
                tokens: response.tokens(begun: begun, scopes: scopes), claims: nil,
                serverDate: response.serverDate)
        case .failure(let failure): throw failure.signInError
        }
    }
}

/// The scopes of a request (RFC 6749 section 3.3).
enum Scopes {
    static func fields(_ scopes: [String]) throws(OAuthError) -> FormEncoding.Fields {
        for scope in scopes {
            guard !scope.isEmpty,
                scope.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c })
            else { throw .invalid("a scope") }
        }
        return scopes.isEmpty ? [] : [("scope", scopes.joined(separator: " "))]
    }
}
#endif
