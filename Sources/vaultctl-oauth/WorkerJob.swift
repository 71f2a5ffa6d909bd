#if OAuth
import OAuthWire
import TokenVault
import TokenVaultAuth
import TokenVaultOAuth

/// One request that the worker processes.
struct WorkerJob {
    let request: WorkerRequest
    let limit: Duration
    let transport: OAuthTransport
    private let end: ContinuousClock.Instant

    init(_ request: WorkerRequest, within limit: Duration) {
        self.request = request
        self.limit = limit
        end = .now + limit
        var configuration = OAuthTransport.Configuration()
        configuration.requestTimeout = min(limit, configuration.requestTimeout)
        configuration.connectTimeout = min(limit, configuration.connectTimeout)
        transport = OAuthTransport(configuration: configuration)
    }

    /// Processes the request and returns the reply.
    func reply() async -> WorkerReply {
        do throws(OAuthError) {
            let provider = try await provider()
            let authentication = authentication(for: provider)
            var client = try OAuthClient(
                provider: provider, clientID: request.clientID,
                authentication: try self.authentication(authentication), transport: transport)
            client.end = end
            switch request.operation {
            case .browser, .device:
                let result = try await signIn(client)
                return .signedIn(
                    WorkerReply.SignedIn(
                        tokens: result.tokens, metadata: try Self.text(of: provider),
                        authentication: authentication, user: result.claims.map(AuthUser.init)))
            case .refresh: return await refresh(client)
            case .revoke: return await revoke(client)
            }
        } catch {
            return .failed(WorkerFailure(error))
        }
    }

    private func provider() async throws(OAuthError) -> ProviderMetadata {
        guard let metadata = request.metadata else {
            return try await ProviderMetadata.discover(issuer: request.issuer, transport: transport)
        }
        guard let provider = try? Secret(utf8: metadata).decode(ProviderMetadata.self),
            provider.issuer.utf8.elementsEqual(request.issuer.utf8)
        else { throw .invalidMetadata("what was kept of it") }
        return provider
    }

    private static func text(of provider: ProviderMetadata) throws(OAuthError) -> String {
        guard let text = try? Secret(encoding: provider).unprotectedText() else {
            throw .invalidMetadata("the document")
        }
        return text
    }

    /// Returns the authentication method: that of the request, else the `Authorization` header. Every
    /// provider must accept the header (RFC 6749 section 2.3.1), unless its metadata says otherwise.
    private func authentication(for provider: ProviderMetadata) -> WorkerRequest.Authentication {
        if let authentication = request.authentication { return authentication }
        guard request.clientSecret != nil else { return .none }
        let methods = provider.tokenEndpointAuthMethodsSupported
        let takesPostAlone =
            methods.map { !$0.contains("client_secret_basic") && $0.contains("client_secret_post") } ?? false
        return takesPostAlone ? .post : .basic
    }

    private func authentication(
        _ name: WorkerRequest.Authentication
    ) throws(OAuthError) -> ClientAuthentication {
        switch (name, request.clientSecret) {
        case (.none, _): return .none
        case (.basic, let secret?): return .clientSecretBasic(Secret(utf8: secret))
        case (.post, let secret?): return .clientSecretPost(Secret(utf8: secret))
        case (_, nil): throw .invalid("the client's secret")
        }
    }

    private func signIn(_ client: OAuthClient) async throws(OAuthError) -> SignInResult {
        if request.operation == .browser {
            return try await client.signIn(
                scopes: request.scopes, port: request.redirectPort, timeout: limit
            ) { (address) throws(OAuthError) in
                WorkerProgram.say(.open(address: address))
            }
        }
        let device = try await client.authorizeDevice(scopes: request.scopes)
        WorkerProgram.say(
            .device(
                WorkerReply.DevicePrompt(
                    code: device.userCode, address: device.verificationURI,
                    completeAddress: device.verificationURIComplete)))
        return try await client.signIn(with: device)
    }

    private func refresh(_ client: OAuthClient) async -> WorkerReply {
        do {
            let response = try await client.refreshRequestProvider(
                RefreshRequest(
                    forwarding: request.refreshToken ?? "", scope: request.scope, idToken: request.idToken,
                    isRetryOfUnknownOutcome: request.isRetry))
            return .refreshed(WorkerReply.Refreshed(response))
        } catch {
            return .failed(WorkerFailure(error as? RefreshFailure ?? RefreshFailure(.interrupted)))
        }
    }

    private func revoke(_ client: OAuthClient) async -> WorkerReply {
        guard let revoke = client.revokeRequestProvider else {
            return .failed(WorkerFailure(.unsupported, "revocation"))
        }
        do {
            try await revoke(
                TokenInfo(accessToken: request.accessToken ?? "", refreshToken: request.refreshToken))
            return .revoked
        } catch {
            return .failed(WorkerFailure(error as? RefreshFailure ?? RefreshFailure(.interrupted)))
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

extension WorkerFailure {
    init(_ error: OAuthError) {
        // `Kind` is spelled out, because a bare name would resolve to the error's initializer here.
        switch error {
        case .invalid(let what): self.init(Kind.invalid, what)
        case .invalidMetadata(let what): self.init(Kind.invalidMetadata, what)
        case .issuerDiffers(.otherName): self.init(Kind.otherIssuer)
        case .issuerDiffers(.slashInMetadata): self.init(Kind.issuerWithSlash)
        case .issuerDiffers(.slashInIssuer): self.init(Kind.issuerWithoutSlash)
        case .issuerDiffers(.tenantPlaceholder): self.init(Kind.issuerOfAllTenants)
        case .redirected(let address): self.init(Kind.redirected, address)
        case .unsupported(let what): self.init(Kind.unsupported, what)
        case .requestFailed(let failure): self.init(failure)
        case .malformedResponse(let what): self.init(Kind.malformedResponse, what)
        case .accessDenied: self.init(Kind.accessDenied)
        case .authorizationRefused(let code): self.init(Kind.authorizationRefused, code)
        case .wrongIssuer: self.init(Kind.wrongIssuer)
        case .wrongState: self.init(Kind.wrongState)
        case .timedOut: self.init(Kind.timedOut)
        case .cannotListen: self.init(Kind.cannotListen)
        case .invalidIDToken(.missing): self.init(Kind.noIDToken)
        case .invalidIDToken(let problem): self.init(Kind.invalidIDToken, problem.description)
        case .cancelled: self.init(Kind.cancelled)
        case .tokensNotRevoked(let reason):
            self.init(reason)
            leavesTokens = true
        }
    }
}
#endif
