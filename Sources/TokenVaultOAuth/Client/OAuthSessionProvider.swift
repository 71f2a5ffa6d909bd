#if OAuth
internal import NIOSSL
internal import TokenVault
package import TokenVaultAuth

/// A prompt of a sign-in to the user.
package enum SignInPrompt: Sendable {
    /// Open the address in the browser. The page leads to it, for the arguments of a program.
    case browser(address: String, page: String)
    /// A report that the pasted address is not the answer to this sign-in.
    case wrongAnswer
    /// Enter the code at the address of `DeviceAuthorization`, on any device.
    case device(DeviceAuthorization)
}

/// Providers asked in this process.
package struct OAuthSessionProvider: SessionProvider {
    private let network: NetworkSettings
    private let prompt: @Sendable (SignInPrompt) -> Void
    /// The addresses that the user pastes; `nil` for none.
    package var pasted: AsyncStream<String>?
    /// Receives the provider's error texts; `nil` to ignore them.
    package var onErrorText: (@Sendable (String) -> Void)?

    /// Creates it. `prompt` shows the user what to do.
    package init(
        _ network: NetworkSettings = NetworkSettings(),
        _ prompt: @escaping @Sendable (SignInPrompt) -> Void
    ) {
        self.network = network
        self.prompt = prompt
    }

    package func authorize(
        _ settings: SignInSettings, within limit: Duration
    ) async throws(OAuthError) -> SignedIn {
        let transport = try transport(settings.certificateFile, within: limit)
        let provider = try await Self.provider(of: settings, transport)
        var profile = Profile(settings, metadata: "", authentication: Self.method(of: settings, at: provider))
        let client = try client(of: profile, at: provider, transport, within: limit)
        let result = try await signIn(client, settings, within: limit)
        guard let metadata = try? Secret(encoding: provider).unprotectedText() else {
            throw .invalidMetadata("the document")
        }
        profile.metadata = metadata
        var signedIn = SignedIn(
            tokens: result.tokens, profile: profile, user: result.claims.map(AuthUser.init))
        signedIn.isTypeAssumed = result.isTokenTypeAssumed
        return signedIn
    }

    package func refresh(
        _ request: RefreshRequest, of profile: Profile, within limit: Duration
    ) async throws(OAuthError) -> TokenRefreshResponse {
        let client = try client(of: profile, within: limit)
        guard try DPoPKey.key(in: request.dpopKey) != nil || !profile.settings.usesDPoP else {
            // A request without a proof could bring a bearer token.
            throw .invalid("the session's key")
        }
        do throws(RefreshFailure) { return try await client.refresh(request) } catch {
            throw .requestFailed(error)
        }
    }

    package func revoke(
        _ tokens: TokenInfo, of profile: Profile, within limit: Duration
    ) async throws(OAuthError) {
        let client = try client(of: profile, within: limit)
        guard let revoke = client.revokeRequestProvider else { throw .unsupported("revocation") }
        do { try await revoke(tokens) } catch {
            throw .requestFailed(error as? RefreshFailure ?? RefreshFailure(.interrupted))
        }
    }

    /// Exchanges a token of the session for one of another service (RFC 8693).
    package func exchange(
        _ exchange: TokenExchange, of profile: Profile, within limit: Duration
    ) async throws(OAuthError) -> TokenInfo {
        let client = try client(of: profile, within: limit)
        let key = try DPoPKey.key(in: exchange.dpopKey.map { Secret(utf8: $0) })
        guard key != nil || !profile.settings.usesDPoP else { throw .invalid("the session's key") }
        return try await client.exchange(
            Secret(utf8: exchange.token), audience: exchange.audience, resources: exchange.resources,
            scopes: exchange.scopes, dpopKey: key
        ).tokens
    }

    private func signIn(
        _ client: OAuthClient, _ settings: SignInSettings, within limit: Duration
    ) async throws(OAuthError) -> SignInResult {
        switch settings.flow {
        case .clientCredentials: return try await client.clientCredentials(scopes: settings.scopes)
        case .browser:
            let address = settings.redirect ?? client.provider.usualRedirect(port: settings.redirectPort)
            let redirect = try await LoopbackRedirect.listen(for: client.provider, address)
            let reader = Task { [pasted, prompt] in
                guard let pasted else { return }
                for await text in pasted where !redirect.take(callback: text) { prompt(.wrongAnswer) }
            }
            defer { reader.cancel() }
            return try await client.signIn(scopes: settings.scopes, at: redirect, timeout: limit) {
                (address, page) throws(OAuthError) in
                prompt(.browser(address: address, page: page))
            }
        case .device:
            let device = try await client.authorizeDevice(scopes: settings.scopes)
            prompt(.device(device))
            return try await client.signIn(with: device)
        }
    }

    /// Returns the provider by its own addresses where it publishes no metadata.
    private static func provider(
        of settings: SignInSettings, _ transport: OAuthTransport
    ) async throws(OAuthError) -> ProviderMetadata {
        guard let endpoints = settings.endpoints else {
            return try await ProviderMetadata.discover(
                issuer: settings.issuer, allowing: settings.allowedOrigins, transport: transport)
        }
        return try ProviderMetadata(
            issuer: settings.issuer, authorizationEndpoint: endpoints.authorization,
            tokenEndpoint: endpoints.token, deviceAuthorizationEndpoint: endpoints.deviceAuthorization,
            revocationEndpoint: endpoints.revocation,
            tokenEndpointAuthMethodsSupported: endpoints.authenticationMethods)
    }

    /// Returns a transport that also trusts the certificates in `certificateFile`. Throws `invalid`.
    private func transport(
        _ certificateFile: String?, within limit: Duration
    ) throws(OAuthError) -> OAuthTransport {
        var configuration = OAuthTransport.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        if let file = network.certificateFile { tls.trustRoots = .certificates(try Self.certificates(file)) }
        if let certificateFile {
            tls.additionalTrustRoots = [.certificates(try Self.certificates(certificateFile))]
        }
        configuration.tlsConfiguration = tls
        if let address = network.proxy {
            guard let proxy = ProxySettings.proxy(address) else { throw .invalid("the proxy's address") }
            configuration.proxy = proxy
            configuration.proxyExceptions = (network.proxyExceptions ?? "").split { ", ".contains($0) }
                .map(String.init)
        }
        configuration.requestTimeout = min(limit, configuration.requestTimeout)
        configuration.connectTimeout = min(limit, configuration.connectTimeout)
        return OAuthTransport(configuration: configuration)
    }

    /// Returns the client of `profile`, for the provider `fetched`. Without `fetched`, uses the stored metadata. Throws
    /// `invalidMetadata` when the stored metadata cannot be used, and `invalid` or `unsupported` for the client.
    private func client(
        of profile: Profile, at fetched: ProviderMetadata? = nil, _ transport: OAuthTransport? = nil,
        within limit: Duration
    ) throws(OAuthError) -> OAuthClient {
        let settings = profile.settings
        guard let provider = fetched ?? (try? Secret(utf8: profile.metadata).decode(ProviderMetadata.self)),
            fetched != nil || provider.issuer.utf8.elementsEqual(settings.issuer.utf8)
        else { throw .invalidMetadata("the stored document") }
        let transport =
            if let transport { transport } else {
                try self.transport(settings.certificateFile, within: limit)
            }
        var parameters = RequestParameters()
        // A request of the client for itself is a token request.
        if settings.flow == .clientCredentials {
            parameters.token = settings.parameters
        } else {
            parameters.authorization = settings.parameters
        }
        parameters.resources = settings.resources
        var idTokens = IDTokenValidator.Configuration()
        idTokens.trustedAudiences = Set(settings.trustedAudiences)
        idTokens.clientSecret = settings.clientSecret.map { Secret(utf8: $0) }
        var client = try OAuthClient(
            provider: provider, clientID: settings.clientID,
            authentication: try ClientAuthentication(profile.authentication, settings),
            parameters: parameters, transport: transport, idTokens: idTokens)
        client.usesDPoP = settings.usesDPoP
        client.end = .now + limit
        client.onErrorText = onErrorText
        return client
    }

    private static func certificates(_ file: String) throws(OAuthError) -> [NIOSSLCertificate] {
        guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty else {
            throw .invalid("the file of trusted certificates")
        }
        return certificates
    }

    /// Returns the authentication method: the chosen one, or the method that fits the client's secret or key. A secret is sent
    /// in the `Authorization` header, which every provider must accept (RFC 6749 section 2.3.1), unless its
    /// metadata says otherwise.
    private static func method(
        of settings: SignInSettings, at provider: ProviderMetadata
    ) -> ClientAuthenticationMethod {
        let identity = settings.clientIdentity
        if let method = identity?.method { return method }
        if identity?.key != nil { return identity?.teamID == nil ? .privateKeyJWT : .appleSecret }
        guard settings.clientSecret != nil else { return .none }
        let methods = provider.tokenEndpointAuthMethodsSupported
        let takesPostAlone =
            methods.map { !$0.contains("client_secret_basic") && $0.contains("client_secret_post") } ?? false
        return takesPostAlone ? .post : .basic
    }
}

extension ClientAuthentication {
    /// Creates the authentication by `method`. Throws `invalid` if `settings` lacks its secret or key.
    fileprivate init(
        _ method: ClientAuthenticationMethod, _ settings: SignInSettings
    ) throws(OAuthError) {
        func secret() throws(OAuthError) -> Secret {
            guard let secret = settings.clientSecret else { throw .invalid("the client's secret") }
            return Secret(utf8: secret)
        }
        func key() throws(OAuthError) -> ClientKey {
            guard let pem = settings.clientIdentity?.key else { throw .invalidKey }
            return try ClientKey(pem: Secret(utf8: pem), identifier: settings.clientIdentity?.keyID)
        }
        switch method {
        case .none: self = .none
        case .basic: self = .clientSecretBasic(try secret())
        case .post: self = .clientSecretPost(try secret())
        case .privateKeyJWT: self = .privateKeyJWT(try key())
        case .appleSecret:
            self = .appleSecret(try key(), teamID: settings.clientIdentity?.teamID ?? "")
        }
    }
}

extension AuthUser {
    fileprivate init(_ claims: IDTokenClaims) {
        // An email address that the provider has not verified can belong to another user.
        self.init(
            identifier: claims.subject, name: claims.name,
            email: claims.isEmailVerified == false ? nil : claims.email)
    }
}

extension OAuthError: ProviderFailure {
    /// The same failure for a refresh. An error other than `requestFailed` comes before the request.
    package var refreshFailure: RefreshFailure {
        switch self {
        case .requestFailed(let failure): failure
        case .cancelled, .timedOut: RefreshFailure(.timedOut)
        default: RefreshFailure(.refused("cannot_ask"))
        }
    }
}
#endif
