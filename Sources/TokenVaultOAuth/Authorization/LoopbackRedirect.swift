#if OAuth
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import TokenVault
public import TokenVaultAuth

/// A listener for a provider's answer on this machine. Its loopback port is open during a sign-in (RFC 8252
/// section 7.3).
///
/// The listener accepts one answer with its request's state: a `GET` of its path, or a `POST` with a form
/// (`response_mode=form_post`). The listener rejects everything else without a change:
/// - another path, method or host, and every request after the answer (`404`);
/// - another state (`400`);
/// - every connection of another user of this machine (`403`). Otherwise a user that can read the address of the
///   sign-in could answer it with another account.
public final class LoopbackRedirect: Sendable {
    /// The address for the provider, with the port that was found.
    public let redirectURI: String
    let state: Secret
    private let answers: AnswerBox
    let channels: [any Channel]
    /// The scheme, host and port.
    private let root: String

    /// The longest time for one connection to send its request.
    private static let patience = TimeAmount.seconds(10)
    /// The number of ports to try where two addresses need the same one.
    private static let portAttempts = 20

    private init(_ channels: [any Channel], _ answers: AnswerBox, _ address: RedirectAddress, port: Int) {
        self.channels = channels
        self.answers = answers
        redirectURI = address.text(at: port)
        root = "http://\(address.host.rawValue):\(port)"
        state = answers.state
        answers.listens(at: address.host, port)
    }

    deinit { for channel in channels { channel.close(promise: nil) } }

    /// Listens at `redirectURI` for an answer of `provider`. It is the registered address: `http`, the host
    /// `127.0.0.1`, `[::1]` or `localhost`, and optionally a port and a path. Without a port, any free port is used,
    /// which providers have to accept (RFC 8252 section 7.3).
    ///
    /// `nil` stands for `http://127.0.0.1/callback` if every answer has to name the provider (RFC 9207).
    /// Otherwise `nil` stands for `http://127.0.0.1/issuer/` and the issuer without its scheme. Then no
    /// provider can get the code of another one (RFC 9700 section 4.4.2.2). Throws `invalid`, `cannotListen`.
    public static func listen(
        for provider: ProviderMetadata, at redirectURI: String? = nil
    ) async throws(OAuthError) -> LoopbackRedirect {
        guard let redirectURI else { return try await listen(for: provider, provider.usualRedirect(port: 0)) }
        guard let address = RedirectAddress(redirectURI) else {
            throw .invalid("the redirection address")
        }
        return try await listen(for: provider, address)
    }

    package static func listen(
        for provider: ProviderMetadata, _ address: RedirectAddress
    ) async throws(OAuthError) -> LoopbackRedirect {
        let answers = AnswerBox(provider: provider, path: address.path)
        for attempt in 1...portAttempts {
            let first = try await bind(address.host == .ipv6 ? "::1" : "127.0.0.1", address.port, answers)
            guard let port = first.localAddress?.port else { throw .cannotListen }
            guard address.host == .name else {
                return LoopbackRedirect([first], answers, address, port: port)
            }
            do throws(OAuthError) {
                let second = try await bind("::1", port, answers)
                return LoopbackRedirect([first, second], answers, address, port: port)
            } catch {
                // A browser may try ::1 first, where another program could listen. Without IPv6 the address does not exist.
                guard await hasIPv6(answers) else {
                    return LoopbackRedirect([first], answers, address, port: port)
                }
                try? await first.close()
                guard address.port == 0, attempt < portAttempts else { throw error }
            }
        }
        throw .cannotListen
    }

    private static func bind(
        _ host: String, _ port: Int, _ answers: AnswerBox
    ) async throws(OAuthError) -> any Channel {
        do {
            return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.backlog, value: 16)
                // A fixed port is free again at once, although closed connections to it still wait.
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(IdleStateHandler(allTimeout: patience))
                        try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
                        try pipeline.addHandler(RedirectHandler(answers: answers))
                    }
                }
                .bind(host: host, port: port).get()
        } catch {
            throw .cannotListen
        }
    }

    private static func hasIPv6(_ answers: AnswerBox) async -> Bool {
        guard let channel = try? await bind("::1", 0, answers) else { return false }
        try? await channel.close()
        return true
    }

    /// The address of a page that leads the browser to `address`. Only a browser of this user gets there, so the
    /// page's address can be an argument of a program, which other users can read.
    func page(leadingTo address: String) -> String { root + answers.leads(to: address) }

    /// Stores the answer in `callback`, an address or its query. Returns whether the answer has this sign-in's
    /// state; also true for a refusal or a later answer.
    func take(callback: String) -> Bool {
        answers.take(fields: AuthorizationAnswer.fields(of: callback), isPasted: true) != .wrongRequest
    }

    /// Waits for the answer and stops listening. Throws `timedOut`, `cancelled`, `wrongIssuer`,
    /// `malformedResponse`.
    func answer(within timeout: Duration) async throws(OAuthError) -> AuthorizationAnswer {
        let answers = answers
        let alarm = Task {
            try await Task.sleep(for: timeout)
            answers.settle(.failure(.timedOut))
        }
        let outcome = await withTaskCancellationHandler {
            await answers.value()
        } onCancel: {
            answers.settle(.failure(.cancelled))
        }
        alarm.cancel()
        for channel in channels { try? await channel.close() }
        return try outcome.get()
    }
}

extension OAuthClient {
    /// Signs a user in with a browser on this machine (RFC 8252). First pushes the request if the provider supports
    /// that (``pushed(_:)``). Then listens on the loopback, calls `open` with
    /// the address, waits for the answer and exchanges it.
    ///
    /// `redirectURI` is that of ``LoopbackRedirect/listen(for:at:)``. `open` returns once the browser was
    /// started; it must show the address only to the user. Throws the same errors as
    /// ``authorizationRequest(redirectURI:scopes:parameters:)`` and ``signIn(_:callback:)``, and also
    /// `cannotListen`, `timedOut`.
    public func signIn(
        scopes: [String], parameters: [String: String] = [:], redirectURI: String? = nil,
        timeout: Duration = .seconds(300), open: @Sendable (String) async throws(OAuthError) -> Void
    ) async throws(OAuthError) -> SignInResult {
        let redirect = try await LoopbackRedirect.listen(for: provider, at: redirectURI)
        return try await signIn(scopes: scopes, parameters: parameters, at: redirect, timeout: timeout) {
            (address, _) throws(OAuthError) in
            try await open(address)
        }
    }

    /// Signs a user in, as the public function. `open` also gets the address of a page that leads to the first
    /// address, for an argument of a program. During the wait, `redirect` also accepts a pasted
    /// answer.
    package func signIn(
        scopes: [String], parameters: [String: String] = [:], at redirect: LoopbackRedirect,
        timeout: Duration, open: @Sendable (String, _ page: String) async throws(OAuthError) -> Void
    ) async throws(OAuthError) -> SignInResult {
        let request = try await pushed(
            try authorizationRequest(
                redirectURI: redirect.redirectURI, state: redirect.state, scopes: scopes,
                parameters: parameters))
        try await open(request.url, redirect.page(leadingTo: request.url))
        return try await exchange(try await redirect.answer(within: timeout), of: request)
    }
}

extension ProviderMetadata {
    /// Returns the address that a browser returns to where no other one is registered.
    func usualRedirect(port: Int) -> RedirectAddress {
        .usual(for: issuer, isNamedInAnswers: authorizationResponseIssParameterSupported, port: port)
    }
}

/// Redacted, since its connections have answers in them.
extension LoopbackRedirect: RedactedStringConvertible {}
#endif
