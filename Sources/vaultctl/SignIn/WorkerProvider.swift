import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

extension OAuthProgram.WorkerError: ProviderFailure {
    /// The matching failure of a request with a session's token.
    var refreshFailure: RefreshFailure {
        switch self {
        case .notStarted, .notAsked: RefreshFailure(.notSent)
        case .ended, .misunderstood, .interrupted, .broken: RefreshFailure(.interrupted)
        case .timedOut: RefreshFailure(.timedOut)
        case .failed(let failure): failure.refreshFailure
        case .other: RefreshFailure(.refused("cannot_ask"))
        }
    }
}

/// Providers as `vaultctl-oauth` asks them, with one process for each request.
struct WorkerProvider: SessionProvider {
    /// The program, or the reason that it cannot be used.
    let program: Result<OAuthProgram, CommandFailure>
    /// The guard that ends the program's processes after a signal.
    let signals: SignalGuard
    /// Whether the provider's error texts are shown.
    var wantsErrorTexts = false
    /// The terminal where the user can paste the callback address; `nil` for none.
    var lines: TerminalLines?
    /// Shows a prompt of a sign-in to the user. Returns the failure to show it.
    var show: @Sendable (WorkerReply) -> CommandFailure? = { _ in nil }

    func authorize(
        _ settings: SignInSettings, within limit: Duration
    ) async throws(OAuthProgram.WorkerError) -> SignedIn {
        guard case .signedIn(let signedIn) = try await ask(.signIn(settings), limit) else {
            throw .misunderstood
        }
        return signedIn.result(with: settings)
    }

    func refresh(
        _ request: RefreshRequest, of profile: Profile, within limit: Duration
    ) async throws(OAuthProgram.WorkerError) -> TokenRefreshResponse {
        let operation = WorkerRequest.Operation.refresh(WorkerRequest.Refresh(request), profile)
        guard case .refreshed(let refreshed) = try await ask(operation, limit) else { throw .misunderstood }
        return refreshed.response
    }

    func revoke(
        _ tokens: TokenInfo, of profile: Profile, within limit: Duration
    ) async throws(OAuthProgram.WorkerError) {
        guard case .revoked = try await ask(.revoke(tokens, profile), limit) else { throw .misunderstood }
    }

    /// Exchanges a token of the session for one of another service.
    func exchange(
        _ exchange: TokenExchange, of profile: Profile, within limit: Duration
    ) async throws(OAuthProgram.WorkerError) -> TokenInfo {
        guard case .exchanged(let tokens) = try await ask(.exchange(exchange, profile), limit) else {
            throw .misunderstood
        }
        return tokens
    }

    /// Sends a request on a thread of its own, which the program's answer blocks.
    private func ask(
        _ operation: WorkerRequest.Operation, _ limit: Duration
    ) async throws(OAuthProgram.WorkerError) -> WorkerReply {
        let thread = WorkerThread(name: "oauth")
        let request = WorkerRequest(
            operation, network: .ofEnvironment, wantsErrorTexts: wantsErrorTexts, within: limit)
        let outcome = await withCheckedContinuation { continuation in
            thread.run {
                continuation.resume(
                    returning: Result { () throws(OAuthProgram.WorkerError) in
                        guard case .success(let program) = program else { throw .other(missing) }
                        return try program.ask(
                            request, until: Deadline(after: limit), interruption: signals, lines: lines,
                            show: show)
                    })
            }
        }
        return try outcome.get()
    }

    /// Returns a `show` that prints error texts on the console of `queue`.
    static func showing(
        errorTextsOn queue: ForegroundQueue<Console>
    ) -> @Sendable (WorkerReply) -> CommandFailure? {
        { reply in
            if case .errorText(let text) = reply { queue.post { $0.noteErrorText(text) } }
            return nil
        }
    }

    private var missing: CommandFailure {
        if case .failure(let failure) = program { failure } else { .interrupted }
    }
}

extension OAuthProgram {
    /// Returns the program, or the reason that it cannot be used.
    static var found: Result<OAuthProgram, CommandFailure> {
        Result { () throws(CommandFailure) in try find() }
    }
}

extension NetworkSettings {
    /// The settings in this program's environment; `nil` when it has none. As in other programs, a name in
    /// small letters comes first.
    fileprivate static var ofEnvironment: NetworkSettings? {
        var settings = NetworkSettings()
        settings.proxy = ProcessFacts.environment("https_proxy") ?? ProcessFacts.environment("HTTPS_PROXY")
        settings.proxyExceptions =
            ProcessFacts.environment("no_proxy") ?? ProcessFacts.environment("NO_PROXY")
        settings.certificateFile = ProcessFacts.environment("SSL_CERT_FILE")
        return settings == NetworkSettings() ? nil : settings
    }
}
