#if OAuth
internal import NIOSSL
internal import TokenVault
package import TokenVaultAuth

/// A prompt of a sign-in to the user.
package enum SignInPrompt: Sendable {
    /// Open the address in the browser. The page leads to it, for the arguments of a program.
    case browser(address: String, page: String)
    /// Enter the code at the address of `DeviceAuthorization`, on any device.
    case device(DeviceAuthorization)
}

/// Providers asked in this process.
package struct OAuthSessionProvider: SessionProvider {
    private let network: NetworkSettings
    private let prompt: @Sendable (SignInPrompt) -> Void

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
        let client = try Self.client(provider, profile, transport, within: limit)
        let result = try await signIn(client, settings, within: limit)
        guard let metadata = try? Secret(encoding: provider).unprotectedText() else {
            throw .invalidMetadata("the document")
        }
        profile.metadata = metadata
        return SignedIn(tokens: result.tokens, profile: profile, user: result.claims.map(AuthUser.init))
    }

    package func refresh(
        _ request: RefreshRequest, of profile: Profile, within limit: Duration
    ) async throws(OAuthError) -> TokenRefreshResponse {
        let client = try client(of: profile, within: limit)
        do { return try await client.refreshRequestProvider(request) } catch {
            throw .requestFailed(error as? RefreshFailure ?? RefreshFailure(.interrupted))
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

    private func signIn(
        _ client: OAuthClient, _ settings: SignInSettings, within limit: Duration
    ) async throws(OAuthError) -> SignInResult {
        guard settings.isDevice else {
            let address = settings.redirect ?? client.provider.usualRedirect(port: settings.redirectPort)
            let redirect = try await LoopbackRedirect.listen(for: client.provider, address)
            return try await client.signIn(scopes: settings.scopes, at: redirect, timeout: limit) {
                (address, page) throws(OAuthError) in
                prompt(.browser(address: address, page: page))
            }
        }
        let device = try await client.authorizeDevice(scopes: settings.scopes)
        prompt(.device(device))
        return try await client.signIn(with: device)
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

    /// Returns the client in `profile`. Throws `invalidMetadata` for metadata that cannot be used.
    private func client(
        of profile: Profile, within limit: Duration
    ) throws(OAuthError) -> OAuthClient {
        guard let provider = try? Secret(utf8: profile.metadata).decode(ProviderMetadata.self),
            provider.issuer.utf8.elementsEqual(profile.issuer.utf8)
        else { throw .invalidMetadata("what was kept of it") }
        return try Self.client(
            provider, profile, try transport(profile.certificateFile, within: limit), within: limit)
    }

    private static func client(
        _ provider: ProviderMetadata, _ profile: Profile, _ transport: OAuthTransport,
        within limit: Duration
    ) throws(OAuthError) -> OAuthClient {
        let authentication: ClientAuthentication
        switch (profile.authentication, profile.clientSecret) {
        case (.none, _): authentication = .none
        case (.basic, let secret?): authentication = .clientSecretBasic(Secret(utf8: secret))
        case (.post, let secret?): authentication = .clientSecretPost(Secret(utf8: secret))
        case (_, nil): throw .invalid("the client's secret")
        }
        var parameters = RequestParameters()
        parameters.authorization = profile.parameters ?? [:]
        parameters.resources = profile.resources ?? []
        var idTokens = IDTokenValidator.Configuration()
        idTokens.trustedAudiences = Set(profile.trustedAudiences ?? [])
        idTokens.clientSecret = profile.clientSecret.map { Secret(utf8: $0) }
        var client = try OAuthClient(
            provider: provider, clientID: profile.clientID, authentication: authentication,
            parameters: parameters, transport: transport, idTokens: idTokens)
        client.end = .now + limit
        return client
    }

    private static func certificates(_ file: String) throws(OAuthError) -> [NIOSSLCertificate] {
        guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty else {
            throw .invalid("the file of trusted certificates")
        }
        return certificates
    }

    /// Returns the authentication method: the `Authorization` header for a client with a secret. Every provider
    /// must accept the header (RFC 6749 section 2.3.1), unless its metadata says otherwise.
    private static func method(
        of settings: SignInSettings, at provider: ProviderMetadata
    ) -> ClientAuthenticationMethod {
        guard settings.clientSecret != nil else { return .none }
        let methods = provider.tokenEndpointAuthMethodsSupported
        let takesPostAlone =
            methods.map { !$0.contains("client_secret_basic") && $0.contains("client_secret_post") } ?? false
        return takesPostAlone ? .post : .basic
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
