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

    /// What the token endpoint answered to `form`, which is sent with the client's name and secret.
    func ask(_ form: FormEncoding.Fields) async -> Result<TokenResponse, AskFailure> {
        guard let endpoint = WebAddress.secure(provider.tokenEndpoint) else {
            return .failure(.useless(.invalidMetadata("the token endpoint")))
        }
        switch await transport.post(
            form + authentication.fields(of: clientID), to: endpoint,
            authorization: authentication.header(of: clientID))
        {
        case .failure(let failure): return .failure(.failed(failure))
        case .success(let answer):
            guard answer.status == 200 else {
                let failure = TokenEndpointFailure.failure(of: answer)
                // An answer, but none of the token endpoint's: a page of what stands before it.
                return .failure(
                    failure.kind == .interrupted
                        ? .useless(.malformedResponse("the status")) : .failed(failure))
            }
            do throws(OAuthError) {
                return .success(try TokenResponse(answer.body, serverDate: answer.serverDate))
            } catch {
                return .failure(.useless(error))
            }
        }
    }

    /// Why the token endpoint gave no tokens.
    enum AskFailure: Error {
        case failed(RefreshFailure)
        /// It answered with success and no tokens that can be used.
        case useless(OAuthError)

        /// The same, of a request that had no refresh token in it.
        var signInError: OAuthError {
            switch self {
            case .failed(let failure):
                Task.isCancelled ? .cancelled : .requestFailed(failure.withoutRefreshToken)
            case .useless(let error): error
            }
        }
    }
}

/// What a sign-in brought.
public struct SignInResult: Sendable {
    /// The tokens, for ``TokenVaultAuth/TokenManager/updateTokens(_:)``.
    public let tokens: TokenInfo
    /// What the ID token says, all of it checked; `nil` when none was asked for.
    public let claims: IDTokenClaims?
    /// The provider's clock at the answer, for ``TokenVaultAuth/TokenManager/noteServerDate(_:from:)``.
    public let serverDate: Date?
}

/// It has the client's secret and the transport.
extension OAuthClient: PrintedWithoutContents {}
#endif
