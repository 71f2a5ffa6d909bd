#if OAuth
public import AsyncHTTPClient
public import NIOCore
internal import NIOHTTP1
internal import Synchronization
public import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// An HTTP client that puts an account's access token into requests, renews it when it is due, and answers the first 401 of a
/// request with one new try, however many redirections it follows.
///
/// ```swift
/// let api = AuthorizedHTTPClient(
///     authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [.https("api.example.com")]))
/// let response = try await api.execute(HTTPClientRequest(url: "https://api.example.com/me"))
/// ```
///
/// Redirections are followed here, one step at a time: each step is authorized anew, so that a token reaches the allowed
/// origins alone, and what the request had for its first origin (`Authorization`, `Cookie` and the token's header) goes to no
/// other.
public final class AuthorizedHTTPClient: Sendable {
    /// Whose tokens are used, and who is given them.
    public let authorizer: TokenAuthProvider
    /// How many redirections are followed; the answer of the one after that is the answer.
    public let maximumRedirects: Int
    private let client: HTTPClient
    /// Whose clock was looked at last, and until when that is enough.
    private let look = Mutex<(origin: RequestOrigin, until: NIODeadline)?>(nil)

    /// A client with `configuration`, but for its redirections. Its threads are those that all of the process's networking
    /// shares.
    public init(
        authorizer: TokenAuthProvider, configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
        maximumRedirects: Int = 5
    ) {
        self.authorizer = authorizer
        self.maximumRedirects = maximumRedirects
        var configuration = configuration
        // A client that follows redirections by itself would take the token along.
        configuration.redirectConfiguration = .disallow
        configuration.checkStatuses()
        configuration.resolveLocalhostLiterally()
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit {
        // A client that was not shut down ends the process.
        Task { [client] in try? await client.shutdown() }
    }

    /// Ends the connections; requests fail from now on.
    public func shutdown() async throws { try await client.shutdown() }

    /// Sends `request` with a token. `body` is sent in place of the request's own: only a body that is given here, or none,
    /// can be sent a second time after a 401 or a redirection that keeps it.
    ///
    /// `timeout` is for all steps together, up to the head of the answer. Throws `TokenError` when there is
    /// no token to be had, and what AsyncHTTPClient throws.
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
            if let token { step.setHeader(authorizer.headerName, to: authorizer.headerValue(token)) }
            var response = try await client.execute(step.request, deadline: deadline)
            if let token, let origin = step.origin {
                noteDate(of: response, from: origin, at: start)
                // As `TokenAuthProvider.send`, which serves any kind of request, without what that costs.
                if response.status == .unauthorized, step.isReplayable, !isSecondTry {
                    isSecondTry = true
                    let newer = try await authorizer.token(replacing: token)
                    step.setHeader(authorizer.headerName, to: authorizer.headerValue(newer))
                    response = try await client.execute(step.request, deadline: deadline)
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

    /// Tells the manager of the server's clock, which is looked at once a second.
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

    /// Reads what is left of a short answer, so that its connection can be used again.
    private static func drain(_ response: HTTPClientResponse) async {
        _ = try? await response.body.collect(upTo: 64 << 10)
    }
}

/// Its connections have requests in them.
extension AuthorizedHTTPClient: RedactedStringConvertible {}
#endif
