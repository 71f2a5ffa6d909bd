/// Puts an account's access token into requests, and retries a rejected request once.
///
/// A token goes only to the allowed origins, even after a redirect, and never in plaintext over a network. On
/// 401 the request is sent once more with a newer token, if its body can be sent again. A token that another
/// call has already replaced is not refreshed a second time. The response to the second attempt is final.
///
/// A server may reject every token, for example because its audience is another service. A token that replaced
/// another rejected one seconds ago is not refreshed again. A token that lacks a scope is not refreshed either.
/// The response is then final.
public struct TokenAuthProvider: Sendable {
    /// The manager that supplies the tokens.
    public let manager: TokenManager
    /// The origins that get tokens.
    public let allowedOrigins: Set<RequestOrigin>
    /// The name of the header.
    public let headerName: String
    /// The text before the token, separated by a space; `nil` for the token alone.
    public let tokenPrefix: String?
    /// Whether unencrypted origins other than this machine also get tokens.
    public let allowsPlaintext: Bool

    private let onAuthenticationFailed: @Sendable (TokenError) async -> Void

    /// Creates a provider. `onAuthenticationFailed` is called when no session can supply a token, so that the
    /// app can show the sign-in. It is also called with `tokenRefused` and `scopeInsufficient`; the response is
    /// then final.
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

    /// Returns the request with its token. A request to an origin that gets no token is returned unchanged. For a bound
    /// token, the caller also adds a `DPoP` header, a proof of `AccessToken.dpopKey`.
    /// Throws the same errors as ``TokenManager/validAccessToken()``.
    public func adapt<Request>(
        _ request: Request
    ) async throws(TokenError) -> AuthorizedRequest<Request> {
        guard let token = try await token(for: request.origin) else {
            return AuthorizedRequest(request: request, token: nil, isRetry: false)
        }
        return authorized(request, with: token, isRetry: false)
    }

    /// Returns the request to send after a response; `nil` when the response is final. A response is final
    /// for every status but 401, for the second attempt, and when the server would reject a new token too. A
    /// response is also final for a request without a token, or with a body that cannot be sent again.
    ///
    /// Throws the same errors as ``TokenManager/accessToken(replacing:)``. An error that leaves the session
    /// alone, such as a missing network, is also thrown: there is no token for a second attempt.
    public func retry<Request>(
        _ sent: AuthorizedRequest<Request>, after response: ResponseMetadata
    ) async throws(TokenError) -> AuthorizedRequest<Request>? {
        guard let token = sent.token, let origin = sent.request.origin, mayCarryToken(origin) else {
            return nil
        }
        if let date = response.serverDate { manager.noteServerDate(date, from: origin) }
        guard !sent.isRetry,
            let newer = try await self.token(
                replacing: token, after: response, mayRepeat: sent.request.isReplayable)
        else { return nil }
        return authorized(sent.request, with: newer, isRetry: true)
    }

    /// Sends `request` with its token, and once more after a 401. Throws ``TokenError`` and the errors of
    /// `send`.
    public func send<Request: AuthorizableRequest, Response: Sendable>(
        _ request: Request, facts: (Response) -> ResponseMetadata, by send: (Request) async throws -> Response
    ) async throws -> Response {
        let first = try await adapt(request)
        let response = try await send(first.request)
        guard let second = try await retry(first, after: facts(response)) else { return response }
        return try await send(second.request)
    }

    /// Returns the token for a request to `origin`; `nil` when that origin gets none. Throws the same errors
    /// as ``TokenManager/validAccessToken()``.
    package func token(for origin: RequestOrigin?) async throws(TokenError) -> AccessToken? {
        guard let origin, mayCarryToken(origin) else { return nil }
        do throws(TokenError) { return try await manager.accessToken() } catch {
            await report(error)
            throw error
        }
    }

    /// Returns the token for a request to `origin` without waiting; `nil` when no token is in memory, or that
    /// origin gets none.
    package func tokenAtHand(for origin: RequestOrigin?) -> AccessToken? {
        guard let origin, mayCarryToken(origin) else { return nil }
        return manager.board.token
    }

    /// Returns a token that replaces `sent`; `nil` when `response` is final, as it is for a request that may not be
    /// repeated. Throws the same errors as
    /// ``TokenManager/accessToken(replacing:)``, except `tokenRefused`.
    package func token(
        replacing sent: AccessToken, after response: ResponseMetadata, mayRepeat: Bool
    ) async throws(TokenError) -> AccessToken? {
        guard !response.needsOtherScope else {
            await report(.scopeInsufficient)
            return nil
        }
        guard response.status == 401, mayRepeat, sent.dpopKey == nil || !response.refusesProof else {
            return nil
        }
        do throws(TokenError) { return try await manager.accessToken(replacing: sent) } catch {
            await report(error)
            if error == .tokenRefused { return nil }
            throw error
        }
    }

    /// Returns the header's value with `token`. A bound token has the prefix `DPoP` instead of ``tokenPrefix`` (RFC 9449
    /// section 7.1).
    package func headerValue(_ token: AccessToken) -> String {
        token.headerValue(after: token.dpopKey == nil ? tokenPrefix : TokenInfo.dpopType)
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
        case .tokenNotFound, .refreshTokenMissing, .refreshTokenExpired, .sessionExpired, .tokenRefused,
            .scopeInsufficient:
            await onAuthenticationFailed(error)
        default: break
        }
    }
}
