#if OAuth
import OAuthWire
import TokenVault
import TokenVaultAuth
import TokenVaultOAuth

/// One request that the worker processes.
struct WorkerJob {
    let request: WorkerRequest
    let limit: Duration
    /// The addresses that the user pastes; `nil` for none.
    var pasted: AsyncStream<String>?

    init(_ request: WorkerRequest, within limit: Duration) {
        self.request = request
        self.limit = limit
    }

    /// Processes the request and returns the reply.
    func reply() async -> WorkerReply {
        var provider = OAuthSessionProvider(request.network ?? NetworkSettings()) {
            WorkerProgram.say(WorkerReply($0))
        }
        provider.pasted = pasted
        if request.wantsErrorTexts { provider.onErrorText = { WorkerProgram.say(.errorText($0)) } }
        do throws(OAuthError) {
            switch request.operation {
            case .signIn(let settings):
                return .signedIn(WorkerReply.SignedIn(try await provider.authorize(settings, within: limit)))
            case .refresh(let refresh, let profile):
                let response = try await provider.refresh(refresh.request, of: profile, within: limit)
                return .refreshed(WorkerReply.Refreshed(response))
            case .exchange(let exchange, let profile):
                return .exchanged(try await provider.exchange(exchange, of: profile, within: limit))
            case .prove(let proof):
                let key = try DPoPKey(pem: Secret(utf8: proof.key))
                return .proved(
                    try await key.proof(
                        method: proof.target.method, url: proof.target.url,
                        accessToken: Secret(utf8: proof.token), nonce: proof.target.nonce))
            case .revoke(let tokens, let profile):
                try await provider.revoke(tokens, of: profile, within: limit)
                return .revoked
            }
        } catch {
            return .failed(WorkerFailure(error))
        }
    }
}

extension WorkerReply {
    fileprivate init(_ prompt: SignInPrompt) {
        switch prompt {
        case .wrongAnswer: self = .wrongAnswer
        case .browser(let address, let page): self = .open(address: address, page: page)
        case .device(let device):
            self = .device(
                DevicePrompt(
                    code: device.userCode, address: device.verificationURI,
                    completeAddress: device.verificationURIComplete))
        }
    }
}

extension WorkerFailure {
    init(_ error: OAuthError) {
        // `Kind` is spelled out, because a bare name would resolve to the error's initializer here.
        switch error {
        case .invalid(let what): self.init(Kind.invalid, what)
        case .invalidKey: self.init(Kind.invalidKey)
        case .invalidMetadata(let what): self.init(Kind.invalidMetadata, what)
        case .issuerDiffers(.otherName): self.init(Kind.otherIssuer)
        case .issuerDiffers(.slashInMetadata): self.init(Kind.issuerWithSlash)
        case .issuerDiffers(.slashInIssuer): self.init(Kind.issuerWithoutSlash)
        case .issuerDiffers(.tenantPlaceholder): self.init(Kind.issuerOfAllTenants)
        case .redirected(let address): self.init(Kind.redirected, address)
        case .foreignEndpoint(let origin): self.init(Kind.foreignEndpoint, origin)
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
