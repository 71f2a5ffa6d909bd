#if OAuth
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import TokenVault
public import TokenVaultAuth

/// A listener for a provider's answer on this machine. Its loopback port is open during a sign-in (RFC 8252
/// section 7.3).
///
/// The listener accepts one answer: a `GET` of its path with the state of its request. The listener rejects
/// everything else without a change: another path, method or host (`404`), another state (`400`), every request
/// after the answer, and every connection of another user of this machine (`403`). Otherwise a user who can
/// read the address of the sign-in could answer it with another account.
public final class LoopbackRedirect: Sendable {
    /// The address for the provider, with the port that was found.
    public let redirectURI: String
    let state: Secret
    private let answers: AnswerBox
    private let channel: any Channel

    /// The longest time for one connection to send its request.
    private static let patience = TimeAmount.seconds(10)

    private init(channel: any Channel, answers: AnswerBox, redirectURI: String) {
        self.channel = channel
        self.answers = answers
        self.redirectURI = redirectURI
        state = answers.state
    }

    deinit { channel.close(promise: nil) }

    /// Listens on 127.0.0.1 for an answer of `provider`. `path` begins with a slash. `port` 0 stands for any
    /// free port, which providers have to accept (RFC 8252 section 7.3). Throws `invalid`, `cannotListen`.
    public static func listen(
        for provider: ProviderMetadata, path: String = "/callback", port: Int = 0
    ) async throws(OAuthError) -> LoopbackRedirect {
        guard path.hasPrefix("/"), WebAddress("http://127.0.0.1\(path)")?.path == path,
            (0...65_535).contains(port)
        else { throw .invalid("the redirection's path or port") }
        let answers = AnswerBox(provider: provider, path: path)
        do {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.backlog, value: 16)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(IdleStateHandler(allTimeout: patience))
                        try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
                        try pipeline.addHandler(RedirectHandler(answers: answers))
                    }
                }
                .bind(host: "127.0.0.1", port: port).get()
            guard let port = channel.localAddress?.port else { throw OAuthError.cannotListen }
            answers.listens(on: port)
            return LoopbackRedirect(
                channel: channel, answers: answers, redirectURI: "http://127.0.0.1:\(port)\(path)")
        } catch {
            throw .cannotListen
        }
    }

    /// The address of a page that leads the browser to `address`. Only a browser of this user gets there, so the
    /// page's address can be an argument of a program, which other users can read.
    func page(leadingTo address: String) -> String {
        "http://127.0.0.1:\(channel.localAddress?.port ?? 0)\(answers.leads(to: address))"
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
        try? await channel.close()
        return try outcome.get()
    }
}

extension OAuthClient {
    /// Signs a user in with a browser on this machine (RFC 8252). Listens on the loopback, calls `open` with
    /// the address, waits for the answer and exchanges it.
    ///
    /// `open` returns once the browser was started; it must show the address only to the user. Throws the
    /// same errors as ``authorizationRequest(redirectURI:scopes:parameters:)`` and ``signIn(_:callback:)``,
    /// and also `cannotListen`, `timedOut`.
    public func signIn(
        scopes: [String], parameters: [String: String] = [:], path: String = "/callback", port: Int = 0,
        timeout: Duration = .seconds(300), open: @Sendable (String) async throws(OAuthError) -> Void
    ) async throws(OAuthError) -> SignInResult {
        try await signIn(scopes: scopes, parameters: parameters, path: path, port: port, timeout: timeout) {
            (address, _) throws(OAuthError) in
            try await open(address)
        }
    }

    /// Signs a user in, as the public function. `open` also gets the address of a page that leads to the first
    /// address, for an argument of a program.
    package func signIn(
        scopes: [String], parameters: [String: String] = [:], path: String = "/callback", port: Int = 0,
        timeout: Duration, open: @Sendable (String, _ page: String) async throws(OAuthError) -> Void
    ) async throws(OAuthError) -> SignInResult {
        let redirect = try await LoopbackRedirect.listen(for: provider, path: path, port: port)
        let request = try authorizationRequest(
            redirectURI: redirect.redirectURI, state: redirect.state, scopes: scopes, parameters: parameters)
        try await open(request.url, redirect.page(leadingTo: request.url))
        return try await exchange(try await redirect.answer(within: timeout), of: request)
    }
}

/// Redacted, since its connections have answers in them.
extension LoopbackRedirect: RedactedStringConvertible {}
#endif
