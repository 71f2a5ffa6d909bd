#if OAuth
public import TokenVault
public import TokenVaultAuth

/// A request that a browser takes to a provider (RFC 6749 section 4.1.1), and the values that its answer is
/// checked against.
///
/// Printing it shows no secret. ``url`` has the state and the nonce in it, so show it only in the user's own
/// browser.
public struct AuthorizationRequest: Sendable {
    /// The address to open in the browser.
    public private(set) var url: String
    /// The address that the provider sends the browser back to.
    public let redirectURI: String
    /// The state, which the answer has to repeat.
    public let state: Secret
    let scopes: [String]
    let nonce: Secret?
    let proofKey: ProofKey
    /// The key that the tokens are to be bound to; `nil` for bearer tokens.
    let dpopKey: DPoPKey?
    fileprivate let endpoint: WebAddress
    /// All fields of the request.
    let fields: FormEncoding.Fields

    /// Returns the request with an address that has only `client_id` and `request_uri`.
    func referring(to reference: String, as client: String) -> AuthorizationRequest {
        var request = self
        request.url = endpoint.adding([("client_id", client), ("request_uri", reference)])
        return request
    }
}

extension AuthorizationRequest: RedactedStringConvertible {}

extension OAuthClient {
    /// Creates a request with PKCE by S256 and a state. A request for an ID token also has a nonce. All of
    /// these values are random.
    ///
    /// `redirectURI` is `https`, a loopback address, or a custom scheme of the app (RFC 8252 section 7).
    /// `parameters` are extra ones for this request, such as `prompt`. They replace ``OAuthClient/parameters`` of
    /// the same name. Throws `foreignEndpoint` when the endpoint is at an origin that is not allowed. Throws
    /// `unsupported` when the provider has no authorization endpoint, or lists PKCE methods without S256, or if
    /// ``usesDPoP`` cannot be honored.
    /// Throws `invalid` for a setting that cannot be used.
    public func authorizationRequest(
        redirectURI: String, scopes: [String], parameters: [String: String] = [:]
    ) throws(OAuthError) -> AuthorizationRequest {
        try authorizationRequest(
            redirectURI: redirectURI, state: RandomText.make(), scopes: scopes, parameters: parameters)
    }

    func authorizationRequest(
        redirectURI: String, state: Secret, scopes: [String], parameters: [String: String]
    ) throws(OAuthError) -> AuthorizationRequest {
        let endpoint = try provider.address(
            .authorization, provider.authorizationEndpoint, for: "sign-in in a browser")
        guard provider.codeChallengeMethodsSupported?.contains("S256") ?? true else {
            throw .unsupported("PKCE with S256")
        }
        guard redirectURI.utf8.allSatisfy({ (0x21...0x7e).contains($0) }), redirectURI.contains(":"),
            !redirectURI.contains("#"),
            !redirectURI.hasPrefix("http:") || WebAddress.secure(redirectURI) != nil
        else { throw .invalid("the redirection address") }
        var all = self.parameters
        all.authorization.merge(parameters) { $1 }
        try all.check()
        let proofKey = ProofKey()
        let nonce = scopes.contains("openid") ? RandomText.make() : nil
        var fields: FormEncoding.Fields = [
            ("response_type", "code"), ("client_id", clientID), ("redirect_uri", redirectURI),
        ]
        fields += try Scopes.fields(scopes)
        fields += [
            ("state", state.unprotectedText() ?? ""), ("code_challenge", proofKey.challenge),
            ("code_challenge_method", "S256"),
        ]
        if let nonce = nonce?.unprotectedText() { fields.append(("nonce", nonce)) }
        let dpopKey = try newDPoPKey()
        // A stolen code is then worthless without the key (RFC 9449 section 10).
        if let dpopKey { fields.append(("dpop_jkt", dpopKey.thumbprint)) }
        fields += all.ofAuthorization
        return AuthorizationRequest(
            url: endpoint.adding(fields), redirectURI: redirectURI, state: state, scopes: scopes,
            nonce: nonce, proofKey: proofKey, dpopKey: dpopKey, endpoint: endpoint, fields: fields)
    }

    /// Exchanges the browser's answer for tokens. `callback` is the whole address that the browser was sent
    /// to, or its query.
    ///
    /// For the answer, throws `wrongState`, `wrongIssuer`, `accessDenied`, `authorizationRefused`,
    /// `malformedResponse`. For the exchange, throws `requestFailed`, `malformedResponse`, `unsupported`,
    /// `invalidIDToken`, `tokensNotRevoked`, `cancelled`. A cancellation after the code was sent throws
    /// `requestFailed` with `timedOut`: the provider may have a session.
    public func signIn(
        _ request: AuthorizationRequest, callback: String
    ) async throws(OAuthError) -> SignInResult {
        let answer = try AuthorizationAnswer(
            query: AuthorizationAnswer.fields(of: callback), expecting: request.state, from: provider)
        return try await exchange(answer, of: request)
    }

    func exchange(
        _ answer: AuthorizationAnswer, of request: AuthorizationRequest
    ) async throws(OAuthError) -> SignInResult {
        if case .refused(_, let errorText?) = answer { onErrorText?(errorText) }
        let begun = clock()
        let response = try await grant(
            [
                ("grant_type", "authorization_code"), ("code", try answer.code()),
                ("redirect_uri", request.redirectURI),
                ("code_verifier", request.proofKey.verifier.unprotectedText() ?? ""),
            ] + parameters.ofToken, dpopKey: request.dpopKey)
        return try await result(
            response, begun: begun, nonce: request.nonce?.unprotectedText(), scopes: request.scopes)
    }
}
#endif
