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
/// let signedIn = try await client.signIn(scopes: ["openid", "offline_access"]) { address in openBrowser(address) }
/// let manager = client.tokenManager(storage: storage, account: "work")
/// try await manager.updateTokens(signedIn.tokens)
/// ```
public struct OAuthClient: Sendable {
    /// The provider.
    public let provider: ProviderMetadata
    /// The name the provider gave this client.
    public let clientID: String
    /// How the client shows that it is itself.
    public let authentication: ClientAuthentication
    /// How requests reach the provider.
    public let transport: OAuthTransport
    /// What looks at ID tokens; its keys are kept between calls.
    public let idTokenValidator: IDTokenValidator
    /// The clock.
    public let clock: @Sendable () -> Date
    let sleep: @Sendable (Duration) async throws -> Void
    /// How long new tokens wait at most for what looks at the ID token beside them.
    var idTokenPatience = Duration.seconds(5)
    /// The same of a sign-in, which comes to nothing without.
    var signInPatience = Duration.seconds(20)
    /// For how long the revocation of tokens that are not used is waited for at most.
    var revocationPatience = Duration.seconds(5)
    /// For how long the tokens of a sign-in that was cancelled meanwhile are waited for.
    var cancellationPatience = Duration.seconds(2)
    /// When whoever asked gives up: some of the time before is kept for revoking what is not used; `nil` for never.
    package var end: ContinuousClock.Instant?

    /// A client. `clock` and `sleep` are what a test replaces. Throws `invalid` for a name that is empty or has characters
    /// other than visible ASCII and spaces (RFC 6749 appendix A.1) and for a secret that is no text, `unsupported` when the
    /// provider's metadata lists ways to authenticate without this one.
    public init(
        provider: ProviderMetadata, clientID: String, authentication: ClientAuthentication = .none,
        transport: OAuthTransport,
        idTokens: IDTokenValidator.Configuration = IDTokenValidator.Configuration(),
        clock: @escaping @Sendable () -> Date = { Date() },
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) throws(OAuthError) {
        guard !clientID.isEmpty, clientID.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            throw .invalid("the client's name")
        }
        switch authentication {
        case .none: break
        case .clientSecretBasic(let secret), .clientSecretPost(let secret):
            guard secret.unprotectedText() != nil else { throw .invalid("the client's secret") }
        }
        if let methods = provider.tokenEndpointAuthMethodsSupported, authentication != .none,
            !methods.contains(authentication.method)
        {
            throw .unsupported(authentication.method)
        }
        self.provider = provider
        self.clientID = clientID
        self.authentication = authentication
        self.transport = transport
        self.clock = clock
        self.sleep = sleep
        idTokenValidator = IDTokenValidator(
            provider: provider, clientID: clientID, configuration: idTokens, transport: transport,
            clock: clock)
    }

    /// What the token endpoint answered to `form`, which is sent with the client's name and secret. A new answer to a client
    /// that knows the type of its tokens need not repeat it: `namesType` false.
    func ask(
        _ form: FormEncoding.Fields, namesType: Bool = true
    ) async -> Result<TokenResponse, AskFailure> {
        guard let endpoint = WebAddress.secure(provider.tokenEndpoint) else {
            return .failure(.useless(.invalidMetadata("the token endpoint"), RefreshFailure(.notSent)))
        }
        switch await transport.post(
            form + authentication.fields(of: clientID), to: endpoint,
            authorization: authentication.header(of: clientID))
        {
        case .failure(let failure): return .failure(.failed(failure))
        case .success(let answer):
            let failure = TokenEndpointFailure.failure(of: answer)
            guard answer.isSuccess else {
                // An answer, but none of the token endpoint's: a page of what stands before it.
                guard case .unusable = failure.kind else { return .failure(.failed(failure)) }
                return .failure(.useless(.malformedResponse("the status"), failure))
            }
            do throws(OAuthError) {
                return .success(
                    try TokenResponse(answer.body, serverDate: answer.serverDate, namesType: namesType))
            } catch {
                guard namesType else { return .failure(.useless(error, failure)) }
                let given = TokenResponse.leftovers(in: answer.body)
                let isOver = await revokeUnused(given.tokens) && given.areAll
                return .failure(.useless(isOver ? error : .tokensNotRevoked(error), failure))
            }
        }
    }

    /// As ``ask(_:namesType:)``, for the tokens of a sign-in: with a cancellation, the answer that is on its way is waited for a
    /// moment more, since the tokens in it are to be given back; not beyond ``end``.
    func askToTheEnd(_ form: FormEncoding.Fields) async -> Result<TokenResponse, AskFailure> {
        let request = Task { await ask(form) }
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

    /// Why the token endpoint gave no tokens.
    enum AskFailure: Error {
        case failed(RefreshFailure)
        /// It answered with success and no tokens that can be used, or not as a token endpoint: for a sign-in, and for a
        /// refresh.
        case useless(OAuthError, RefreshFailure)

        /// The same, of a request that had no refresh token in it.
        var signInError: OAuthError {
            switch self {
            case .failed(let failure):
                Task.isCancelled ? .cancelled : .requestFailed(failure.withoutRefreshToken)
            case .useless(let error, _): error
            }
        }
    }
}

/// What a sign-in brought.
public struct SignInResult: Sendable {
    /// The tokens, for `TokenManager.updateTokens`.
    public let tokens: TokenInfo
    /// What the ID token says, all of it checked; `nil` when none was asked for.
    public let claims: IDTokenClaims?
    /// The provider's clock at the answer, for `TokenManager.noteServerDate`.
    public let serverDate: Date?
}

/// It has the client's secret and the transport.
extension OAuthClient: RedactedStringConvertible {}
#endif
