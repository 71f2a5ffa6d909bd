/// Puts an account's access token into requests, and answers a refusal with one new try.
///
/// A token goes to the origins that were named and to no others, whatever a redirect says, and never in clear over a
/// network. On 401 the request is sent once more, with a newer token, if its body can be sent again: a token that another
/// call has replaced meanwhile is not refreshed a second time. The answer to the second try is the answer.
public struct TokenAuthProvider: Sendable {
    /// The manager whose tokens are used.
    public let manager: TokenManager
    /// Who is given tokens.
    public let allowedOrigins: Set<RequestOrigin>
    /// The name of the header.
    public let headerName: String
    /// What comes before the token, with a space between; `nil` for the token alone.
    public let tokenPrefix: String?
    /// Whether origins without encryption that are not this machine get tokens too.
    public let allowsPlaintext: Bool

    private let onAuthenticationFailed: @Sendable (TokenError) async -> Void

    /// A provider. `onAuthenticationFailed` is called when there is no session any more that could give a token: to show
    /// the sign-in.
    public init(
        manager: TokenManager, allowedOrigins: Set<RequestOrigin>, headerName: String = "Authorization",
        tokenPrefix: String? = "Bearer", allowsPlaintext: Bool = false,
        onAuthenticationFailed: @escaping @Sendable (TokenError) async -> Void = { _ in }
    ) {
        self.manager = manager
        self.allowedOrigins = allowedOrigins
        self.headerName = headerName
        self.tokenPrefix = tokenPrefix
        self.allowsPlaintext = allowsPlaintext
        self.onAuthenticationFailed = onAuthenticationFailed
    }

    /// The request with its token. One to an origin that gets none is returned as it is. Throws as
    /// ``TokenManager/validAccessToken()``.
    public func adapt<Request>(
        _ request: Request
    ) async throws(TokenError) -> AuthorizedRequest<Request> {
        guard let token = try await token(for: request.origin) else {
            return AuthorizedRequest(request: request, token: nil, isRetry: false)
        }
        return authorized(request, with: token, isRetry: false)
    }

    /// What to send in answer to a response; `nil` when the response is the answer. That is so for every status but 401,
    /// for the second try, for a request without a token and for one that cannot be sent again. Throws as
    /// ``TokenManager/accessToken(replacing:)``: an error that leaves the session alone (no network, say) is thrown as
    /// well, since the refusal has no other answer.
    public func retry<Request>(
        _ sent: AuthorizedRequest<Request>, after response: ResponseMetadata
    ) async throws(TokenError) -> AuthorizedRequest<Request>? {
        guard let token = sent.token, let origin = sent.request.origin, mayCarryToken(origin) else {
            return nil
        }
        if let date = response.serverDate { manager.noteServerDate(date, from: origin) }
        guard response.status == 401, !sent.isRetry, sent.request.isReplayable else { return nil }
        return authorized(sent.request, with: try await self.token(replacing: token), isRetry: true)
    }

    /// Sends `request` with its token, and once more after a 401. Throws ``TokenError`` and what `send` throws.
    public func send<Request: AuthorizableRequest, Response: Sendable>(
        _ request: Request, facts: (Response) -> ResponseMetadata, by send: (Request) async throws -> Response
    ) async throws -> Response {
        let first = try await adapt(request)
        let response = try await send(first.request)
        guard let second = try await retry(first, after: facts(response)) else { return response }
        return try await send(second.request)
    }

    /// The token for a request to `origin`; `nil` when that gets none. Throws as ``TokenManager/validAccessToken()``.
    package func token(for origin: RequestOrigin?) async throws(TokenError) -> AccessToken? {
        guard let origin, mayCarryToken(origin) else { return nil }
        do throws(TokenError) { return try await manager.accessToken() } catch {
            await report(error)
            throw error
        }
    }

    /// The token for a request to `origin` that is at hand without waiting; `nil` when none is, or that gets none.
    package func tokenAtHand(for origin: RequestOrigin?) -> AccessToken? {
        guard let origin, mayCarryToken(origin) else { return nil }
        return manager.board.token
    }

    /// The token in place of one that was refused. Throws as ``TokenManager/accessToken(replacing:)``.
    package func token(replacing refused: AccessToken) async throws(TokenError) -> AccessToken {
        do throws(TokenError) { return try await manager.accessToken(replacing: refused) } catch {
            await report(error)
            throw error
        }
    }

    /// What the header says with `token`.
    package func headerValue(_ token: AccessToken) -> String {
        token.headerValue(after: tokenPrefix)
    }

    private func mayCarryToken(_ origin: RequestOrigin) -> Bool {
        allowedOrigins.contains(origin) && (allowsPlaintext || origin.keepsSecrets)
    }

    private func authorized<Request>(
        _ request: Request, with token: AccessToken, isRetry: Bool
    ) -> AuthorizedRequest<Request> {
        var request = request
        request.setHeader(headerName, to: headerValue(token))
        return AuthorizedRequest(request: request, token: token, isRetry: isRetry)
    }

    private func report(_ error: TokenError) async {
        switch error {
        case .tokenNotFound, .refreshTokenMissing, .refreshTokenExpired, .sessionExpired:
            await onAuthenticationFailed(error)
        default: break
        }
    }
}
