#if OAuth
internal import TokenVault
public import TokenVaultAuth

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A client of an OAuth 2 or OpenID Connect provider: signs in, refreshes, revokes.
///
/// ```swift
/// let transport = OAuthTransport()
/// let provider = try await ProviderMetadata.discover(issuer: "https://id.example.com", transport: transport)
/// let client = try OAuthClient(provider: provider, clientID: "my-app", transport: transport)
/// let signedIn = try await client.signIn(scopes: ["openid", "offline_access"]) { address in
///     openBrowser(address)
/// }
/// let manager = client.tokenManager(storage: storage, account: "work")
/// try await manager.updateTokens(signedIn.tokens)
/// ```
public struct OAuthClient: Sendable {
    /// The provider.
    public let provider: ProviderMetadata
    /// The name that the provider gave this client.
    public let clientID: String
    /// The way this client authenticates.
    public let authentication: ClientAuthentication
    /// The extra parameters of this client's requests.
    public let parameters: RequestParameters
    /// The transport of the requests to the provider.
    public let transport: OAuthTransport
    /// The validator of ID tokens; it keeps the provider's keys between calls.
    public let idTokenValidator: IDTokenValidator
    /// The clock.
    public let clock: @Sendable () -> Date
    let sleep: @Sendable (Duration) async throws -> Void
    /// The audience of an assertion that each endpoint accepted.
    private let acceptedAudiences = AcceptedAudiences()
    private let nonces = DPoPNonces()
    /// Whether a sign-in binds its tokens to a new key (RFC 9449). Servers then accept the tokens only with a proof. A
    /// sign-in throws `unsupported` if the provider does not bind the tokens.
    public var usesDPoP = false
    /// The longest delay of new tokens by the check of their ID token.
    var idTokenPatience = Duration.seconds(5)
    /// The same limit for a sign-in, which fails without the check.
    var signInPatience = Duration.seconds(20)
    /// The longest wait for the revocation of unused tokens.
    var revocationPatience = Duration.seconds(5)
    /// The longest wait for the tokens of a cancelled sign-in.
    var cancellationPatience = Duration.seconds(2)
    /// The time when the caller gives up, or `nil`. Part of the time before it is reserved for revoking
    /// unused tokens.
    package var end: ContinuousClock.Instant?
    /// Receives the provider's error text (``ProviderErrorText``); `nil` to ignore it.
    var onErrorText: (@Sendable (String) -> Void)?

    /// Creates a client. Tests replace `clock` and `sleep`. Throws `invalid` for a name that is empty or not visible
    /// ASCII and spaces (RFC 6749 appendix A.1). Also throws `invalid` for a secret or a parameter that cannot be used,
    /// and for an Apple key without an identifier or a team. Throws `invalidKey` for an Apple key that is not on P-256.
    /// Throws `unsupported` when the provider's metadata lists authentication methods without this one.
    public init(
        provider: ProviderMetadata, clientID: String, authentication: ClientAuthentication = .none,
        parameters: RequestParameters = RequestParameters(), transport: OAuthTransport,
        idTokens: IDTokenValidator.Configuration = IDTokenValidator.Configuration(),
        clock: @escaping @Sendable () -> Date = { Date() },
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) throws(OAuthError) {
        guard !clientID.isEmpty, clientID.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            throw .invalid("the client's name")
        }
        try authentication.check()
        if let methods = provider.tokenEndpointAuthMethodsSupported, authentication != .none,
            !methods.contains(authentication.method)
        {
            throw .unsupported(authentication.method)
        }
        try parameters.check()
        self.provider = provider
        self.parameters = parameters
        self.clientID = clientID
        self.authentication = authentication
        self.transport = transport
        self.clock = clock
        self.sleep = sleep
        idTokenValidator = IDTokenValidator(
            provider: provider, clientID: clientID, configuration: idTokens, transport: transport,
            clock: clock)
    }

    /// Sends `form` with the client's authentication to `endpoint`, and returns the successful answer. Throws the
    /// provider's refusal, or the failure to get an answer. Throws `refused("cannot_ask")` when a key does not sign.
    ///
    /// With `dpopKey`, the request has a proof of that key. If the provider demands a nonce, the request is sent once
    /// more.
    func post(
        _ form: FormEncoding.Fields, to endpoint: WebAddress, dpopKey: DPoPKey? = nil
    ) async throws(RefreshFailure) -> OAuthTransport.Answer {
        var audiences = RequestAuthentication.audiences(self, endpoint)[...]
        if let known = acceptedAudiences.value(endpoint.text) {
            audiences = [known] + audiences.filter { $0 != known }
        }
        var hasNonce = false
        let begun = ContinuousClock.now
        while true {
            let audience = audiences.popFirst() ?? endpoint.text
            let nonce = nonces.value(endpoint.origin)
            let authentication: RequestAuthentication
            do throws(OAuthError) {
                authentication = try await RequestAuthentication(
                    self, audience: audience, at: endpoint, dpopKey, nonce: nonce)
            } catch {
                throw RefreshFailure(.refused("cannot_ask"))
            }
            let names = authentication.fields.map(\.name)
            let sent = form.filter { !names.contains($0.name) } + authentication.fields
            let answer = try await transport.post(sent, to: endpoint, headers: authentication.headers)
            let isNew = nonces.note(answer.dpopNonce, of: endpoint.origin, after: nonce)
            guard let refusal = TokenEndpointFailure.refusal(in: answer) else {
                // Only a success counts: a gateway may refuse a request without reading the assertion.
                acceptedAudiences.note(audience, at: endpoint.text)
                return answer
            }
            // The provider did not process the request (RFC 9449 section 8).
            // A request whose answer comes too late would lose a refresh token.
            let isInTime = end.map { $0 - .now > .now - begun } ?? true
            if refusal.kind == .refused("use_dpop_nonce"), dpopKey != nil, isNew, !hasNonce, isInTime {
                hasNonce = true
                audiences.insert(audience, at: audiences.startIndex)
                continue
            }
            // The provider did not look at the rest of the request.
            if refusal.kind == .refused("invalid_client"), !audiences.isEmpty { continue }
            reportErrorText(of: answer, refusal, to: sent, authentication)
            throw refusal
        }
    }

    /// Sends `form` with the client's authentication, and returns the token endpoint's response. Revokes the
    /// tokens of an unusable response, except after a refresh: the stored session may continue with them.
    func ask(
        _ form: FormEncoding.Fields, dpopKey: DPoPKey? = nil, isRefresh: Bool = false
    ) async -> Result<TokenResponse, AskFailure> {
        guard let endpoint = WebAddress.secure(provider.tokenEndpoint) else {
            return .failure(.useless(.invalidMetadata("the token endpoint"), RefreshFailure(.notSent)))
        }
        let answer: OAuthTransport.Answer
        do throws(RefreshFailure) { answer = try await post(form, to: endpoint, dpopKey: dpopKey) } catch {
            guard case .unusable(let status) = error.kind, (300...499).contains(status) else {
                return .failure(.failed(error))
            }
            // The response comes from a gateway, not from the token endpoint.
            return .failure(.useless(.malformedResponse("the status"), error))
        }
        do throws(OAuthError) {
            return .success(
                try TokenResponse(answer.body, serverDate: answer.serverDate, dpopKey: dpopKey?.pem))
        } catch {
            let failure = TokenEndpointFailure.failure(of: answer)
            guard !isRefresh else { return .failure(.useless(error, failure)) }
            let given = TokenResponse.leftovers(in: answer.body)
            let isOver = await revokeUnused(given.tokens) && given.areAll
            return .failure(.useless(isOver ? error : .tokensNotRevoked(error), failure))
        }
    }

    /// Sends `form` as ``ask(_:dpopKey:isRefresh:)`` does, for a sign-in. After a cancellation, waits a moment longer
    /// for the response, since its tokens have to be revoked. Never waits beyond ``end``.
    func askToTheEnd(
        _ form: FormEncoding.Fields, dpopKey: DPoPKey?
    ) async -> Result<TokenResponse, AskFailure> {
        let request = Task { await ask(form, dpopKey: dpopKey) }
        let (patience, end) = (cancellationPatience, end)
        return await withTaskCancellationHandler {
            await request.value
        } onCancel: {
            Task {
                let limit = ContinuousClock.now.advanced(by: patience)
                try? await Task.sleep(until: min(limit, end ?? limit), clock: .continuous)
                request.cancel()
            }
        }
    }

    /// Returns the response to `form`, a request that begins a session. After a cancellation waits a moment longer.
    /// If the answer was lost, throws `requestFailed`, which says that the provider may have a session.
    func grant(
        _ form: FormEncoding.Fields, dpopKey: DPoPKey?
    ) async throws(OAuthError) -> TokenResponse {
        switch await askToTheEnd(form, dpopKey: dpopKey) {
        case .success(let response): return response
        case .failure(.failed(let failure)) where failure.leavesOutcomeUnknown:
            throw .requestFailed(failure.ofGrant)
        case .failure(let failure): throw failure.signInError
        }
    }

    /// Returns the key of a new session; `nil` for bearer tokens. Throws `unsupported` when the metadata lists algorithms
    /// for proofs, but not the one of the key.
    func newDPoPKey() throws(OAuthError) -> DPoPKey? {
        guard usesDPoP else { return nil }
        guard provider.dpopSigningAlgValuesSupported?.contains(DPoPKey.algorithm) ?? true else {
            throw .unsupported("DPoP with \(DPoPKey.algorithm)")
        }
        return DPoPKey()
    }

    /// The reason that the token endpoint gave no tokens.
    enum AskFailure: Error {
        case failed(RefreshFailure)
        /// A success without usable tokens, or a response that is not a token endpoint's. The values are the
        /// errors for a sign-in and for a refresh.
        case useless(OAuthError, RefreshFailure)

        /// The error for a request without a refresh token.
        var signInError: OAuthError {
            switch self {
            case .failed(let failure):
                Task.isCancelled ? .cancelled : .requestFailed(failure.withoutRefreshToken)
            case .useless(let error, _): error
            }
        }
    }
}

/// The result of a sign-in.
public struct SignInResult: Sendable {
    /// The tokens, for `TokenManager.updateTokens`.
    public let tokens: TokenInfo
    /// The checked claims of the ID token; `nil` when none was requested.
    public let claims: IDTokenClaims?
    /// The provider's clock at the response, for `TokenManager.noteServerDate`.
    public let serverDate: Date?
    /// Whether the token type is missing from the response. Bearer is then assumed.
    public let isTokenTypeAssumed: Bool
}

/// Redacted, since it has the client's secret and the transport.
extension OAuthClient: RedactedStringConvertible {}

extension OAuthClient {
    /// Gets tokens for the client itself, without a user (RFC 6749 section 4.4). A token manager of this client
    /// renews them (`TokenInfo.isOfClient`). Throws `unsupported` for a
    /// client without a secret or key, or if ``usesDPoP`` cannot be honored, and `requestFailed`, `malformedResponse`, `tokensNotRevoked`, `cancelled`.
    public func clientCredentials(scopes: [String] = []) async throws(OAuthError) -> SignInResult {
        guard authentication != .none else {
            throw .unsupported("client credentials without a secret or key")
        }
        let begun = clock()
        let form =
            [(name: "grant_type", value: "client_credentials")] + (try Scopes.fields(scopes))
            + parameters.ofToken
        let response = try await grant(form, dpopKey: try newDPoPKey()).ofClient
        var tokens = response.tokens(begun: begun, scopes: scopes)
        tokens.clientScopes = scopes
        return response.result(tokens)
    }
}

extension [String] {
    /// The scopes separated by spaces; `nil` for none.
    var text: String? { isEmpty ? nil : joined(separator: " ") }
}

/// The scopes of a request (RFC 6749 section 3.3).
enum Scopes {
    static func fields(_ scopes: [String]) throws(OAuthError) -> FormEncoding.Fields {
        guard scopes.allSatisfy(SignInSettings.isScope) else { throw .invalid("a scope") }
        return scopes.text.map { [("scope", $0)] } ?? []
    }
}
#endif
