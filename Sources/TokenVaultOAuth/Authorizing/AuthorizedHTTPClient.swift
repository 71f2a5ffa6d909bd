#if OAuth
public import AsyncHTTPClient
public import NIOCore
internal import NIOHTTP1
internal import Synchronization
public import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// An HTTP client that puts an account's access token into requests and refreshes it when it is due. It
/// retries the first 401 of a request once, regardless of the number of redirects.
///
/// ```swift
/// let api = AuthorizedHTTPClient(
///     authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [.https("api.example.com")]))
/// let response = try await api.execute(HTTPClientRequest(url: "https://api.example.com/me"))
/// ```
///
/// A request with a bound token also has a proof (RFC 9449 section 7.1).
///
/// The client follows redirects itself and authorizes each step again, so that only the allowed origins get a
/// token. Another origin gets no `Authorization`, `Cookie` and `DPoP` header of the request, and no token header.
public final class AuthorizedHTTPClient: Sendable {
    /// The provider that puts tokens into requests.
    public let authorizer: TokenAuthProvider
    /// The largest number of redirects to follow; after that, a redirect is returned as the response.
    public let maximumRedirects: Int
    private let client: HTTPClient
    /// The server whose clock was read last, and the time of the next reading.
    private let look = Mutex<(origin: RequestOrigin, until: NIODeadline)?>(nil)
    private let nonces = DPoPNonces()

    /// Creates a client with `configuration`, except for its redirect setting, TLS before 1.2 and ciphers without ephemeral
    /// keys. The client uses the event loops that the whole process shares.
    public init(
        authorizer: TokenAuthProvider, configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
        maximumRedirects: Int = 5
    ) {
        self.authorizer = authorizer
        self.maximumRedirects = maximumRedirects
        var configuration = configuration
        // A client that follows redirects itself would pass the token on.
        configuration.redirectConfiguration = .disallow
        configuration.requireForwardSecrecy()
        configuration.checkStatuses()
        configuration.resolveLocalhostLiterally()
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit {
        // Without a shutdown, the client ends the process.
        Task { [client] in try? await client.shutdown() }
    }

    /// Closes the connections; later requests fail.
    public func shutdown() async throws { try await client.shutdown() }

    /// Sends `request` with a token. `body` replaces the body of the request. Only a body that is given here,
    /// or no body, can be sent again after a 401 or a redirect that keeps it.
    ///
    /// `timeout` covers all steps together, up to the head of the response. Throws `TokenError` when no token
    /// is available, `OAuthError.invalid` for the key of a bound token, and the errors of AsyncHTTPClient.
    public func execute(
        _ request: consuming HTTPClientRequest, body: ByteBuffer? = nil, timeout: Duration = .seconds(60)
    ) async throws -> HTTPClientResponse {
        let start = NIODeadline.now()
        let deadline = start + TimeAmount(timeout)
        var step = OutgoingRequest(request, body: body)
        var (redirects, isSecondTry) = (0, false)
        while true {
            var token = authorizer.tokenAtHand(for: step.origin)
            if token == nil { token = try await authorizer.token(for: step.origin) }
            var response = try await send(&step, with: token, until: deadline)
            if let token, let origin = step.origin {
                noteDate(of: response, from: origin, at: start)
                // The same steps as `TokenAuthProvider.send`, without its cost for supporting any kind of
                // request.
                if !isSecondTry, let facts = ResponseMetadata(refusal: response),
                    let newer = try await authorizer.token(
                        replacing: token, after: facts, mayRepeat: step.isReplayable)
                {
                    isSecondTry = true
                    response = try await send(&step, with: newer, until: deadline)
                }
            }
            guard redirects < maximumRedirects,
                let next = step.redirected(by: response, without: authorizer.headerName)
            else { return response }
            redirects += 1
            step = next
            await Self.drain(response)
        }
    }

    /// Sends `step` with `token`. For a bound token, adds a proof, and sends `step` once more if the server demands a
    /// nonce (RFC 9449 section 9).
    private func send(
        _ step: inout OutgoingRequest, with token: AccessToken?, until deadline: NIODeadline
    ) async throws -> HTTPClientResponse {
        if let token { step.setHeader(authorizer.headerName, to: authorizer.headerValue(token)) }
        guard let token, let origin = step.origin, let pem = token.dpopKey else {
            step.setProof(nil)
            return try await client.execute(step.request, deadline: deadline)
        }
        let key = try DPoPKey(pem: pem)
        var isSecondTry = false
        while true {
            let nonce = nonces.value(origin)
            step.setProof(
                try await key.proof(
                    method: step.request.method.rawValue, url: step.request.url, accessToken: token.secret,
                    nonce: nonce))
            let response = try await client.execute(step.request, deadline: deadline)
            let isNew = nonces.note(
                response.headers.first(name: "DPoP-Nonce"), of: origin, after: nonce)
            guard isNew, !isSecondTry, step.isReplayable,
                ResponseMetadata(refusal: response)?.demandsNonce ?? false
            else { return response }
            isSecondTry = true
            await Self.drain(response)
        }
    }

    /// Passes the server's clock to the manager, at most once a second.
    private func noteDate(of response: HTTPClientResponse, from origin: RequestOrigin, at now: NIODeadline) {
        let isDue = look.withLock { look in
            if let look, now < look.until, look.origin == origin { return false }
            look = (origin, now + .seconds(1))
            return true
        }
        guard isDue, let text = response.headers.first(name: "Date"),
            let date = HTTPDate.parse(text, now: Date())
        else { return }
        authorizer.manager.noteServerDate(date, from: origin)
    }

    /// Reads the rest of a short response for a second at most, so that its connection can be used again.
    private static func drain(_ response: HTTPClientResponse) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { _ = try? await response.body.collect(upTo: 64 << 10) }
            group.addTask { try? await Task.sleep(for: .seconds(1)) }
            await group.next()
            group.cancelAll()
        }
    }
}

extension ResponseMetadata {
    /// Creates the metadata of a response that refuses a token; `nil` for other responses.
    fileprivate init?(refusal response: HTTPClientResponse) {
        guard response.status == .unauthorized || response.status == .forbidden else { return nil }
        self.init(
            status: Int(response.status.code), challenges: response.headers["WWW-Authenticate"])
    }
}

/// Redacted, since its connections have requests in them.
extension AuthorizedHTTPClient: RedactedStringConvertible {}
#endif
