#if OAuth
public import TokenVault
public import TokenVaultAuth

extension OAuthClient {
    /// Refreshes tokens (RFC 6749 section 6), for a `TokenManager`. Throws `RefreshFailure`.
    ///
    /// A new ID token has to have the same issuer, subject and client as the previous one (OpenID Connect
    /// Core section 12.2). Otherwise the failure is `refused("id_token_mismatch")`, nothing of the response
    /// is used, and its tokens are revoked where the provider supports that.
    ///
    /// An ID token that cannot be checked for another reason is dropped, and the tokens are kept: a rotated
    /// refresh token must not be lost. One such reason is a key set that does not arrive within five seconds
    /// and the time of the request. Other unusable optional parts are dropped for the same reason. A success
    /// without a usable access token is `RefreshFailure.Kind.unusable`.
    public var refreshRequestProvider: RefreshRequestProvider {
        { request in try await refresh(request) }
    }

    /// Revokes the refresh token, then the access token (RFC 7009 section 2.1); `nil` when the provider has
    /// no revocation endpoint. Throws `RefreshFailure`.
    ///
    /// When the address of that endpoint cannot be used, every revocation throws `refused("no_usable_endpoint")`.
    public var revokeRequestProvider: RevokeRequestProvider? {
        guard !provider.unusable.contains(.revocation) else {
            return { _ in throw RefreshFailure(.refused("no_usable_endpoint")) }
        }
        guard let endpoint = provider.revocationEndpoint.flatMap(WebAddress.secure) else { return nil }
        return { tokens in try await revoke(tokens, at: endpoint) }
    }

    /// Creates a manager of an account's tokens that refreshes and revokes with this client.
    public func tokenManager(
        storage: any TokenStorage, account: String,
        configuration: TokenManager.Configuration = TokenManager.Configuration()
    ) -> TokenManager {
        TokenManager(
            storage: storage, account: account, configuration: configuration,
            revokeRequestProvider: revokeRequestProvider, refreshRequestProvider: refreshRequestProvider)
    }

    func refresh(_ request: RefreshRequest) async throws(RefreshFailure) -> TokenRefreshResponse {
        let form: FormEncoding.Fields =
            request.refreshToken.isEmpty
            ? [("grant_type", "client_credentials")]
                + (request.scope.flatMap { $0.isEmpty ? nil : [("scope", $0)] } ?? [])
            : [("grant_type", "refresh_token"), ("refresh_token", request.refreshToken)]
        let begun = ContinuousClock.now
        let dpopKey: DPoPKey?
        do throws(OAuthError) { dpopKey = try DPoPKey.key(in: request.dpopKey) } catch {
            throw RefreshFailure(.refused("cannot_ask"))
        }
        let response: TokenResponse
        // The stored session may go on with the tokens of an unusable response, but no client credentials do.
        switch await ask(
            form + parameters.ofToken, dpopKey: dpopKey, isRefresh: !request.refreshToken.isEmpty)
        {
        case .success(let success): response = request.refreshToken.isEmpty ? success.ofClient : success
        case .failure(.failed(let failure)), .failure(.useless(_, let failure)):
            throw request.refreshToken.isEmpty ? failure.withoutRefreshToken : failure
        }
        var idToken: String?
        if let new = response.idToken {
            guard Self.isContinuation(new, of: request) else {
                var failure = RefreshFailure(.refused("id_token_mismatch"), serverDate: response.serverDate)
                failure.leavesTokens = !(await revokeUnused(response.tokens(begun: clock(), scopes: [])))
                throw failure
            }
            let left = transport.configuration.requestTimeout - (ContinuousClock.now - begun)
            idToken = await isValid(new, response, within: min(idTokenPatience, left)) ? new : nil
        }
        var renewed = TokenRefreshResponse(
            accessToken: response.accessToken, expiresIn: response.expiresIn,
            refreshToken: response.refreshToken, refreshTokenExpiresIn: response.refreshTokenExpiresIn,
            idToken: idToken, tokenType: response.tokenType, scope: response.scope,
            serverDate: response.serverDate)
        renewed.hasUnusableLifetime = response.hasUnusableLifetime
        return renewed
    }

    /// Whether a new ID token belongs to the same user as the previous one.
    private static func isContinuation(_ idToken: String, of request: RefreshRequest) -> Bool {
        guard let claims = IDTokenClaims(unverified: idToken) else { return true }
        guard let previous = request.idToken.flatMap({ IDTokenClaims(unverified: $0) }) else {
            return request.subject.map { $0.utf8.elementsEqual(claims.subject.utf8) } ?? true
        }
        return claims.isContinuation(of: previous)
    }

    /// Whether the ID token of `response` proves valid within `limit`. The other tokens wait that long at most, since the
    /// caller may give up.
    private func isValid(
        _ idToken: String, _ response: TokenResponse, within limit: Duration
    ) async -> Bool {
        guard limit > .zero else { return false }
        let expectation = IDTokenExpectation(accessToken: response.accessToken)
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                let claims = try? await idTokenValidator.validate(
                    idToken, expecting: expectation, serverDate: response.serverDate)
                return claims != nil
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }

    /// Revokes the tokens of a response that is not used. Returns false when the revocation failed, or the
    /// provider has no endpoint for it.
    func revokeUnused(_ tokens: TokenInfo) async -> Bool { await revokeUnused(Self.named(tokens)) }

    /// Revokes tokens with their type hints. Waits for the result, since the program may be about to end.
    /// Runs outside the caller's task, which may be cancelled.
    func revokeUnused(_ tokens: [(token: String, hint: String)]) async -> Bool {
        guard !tokens.isEmpty else { return true }
        guard let endpoint = provider.revocationEndpoint.flatMap(WebAddress.secure) else { return false }
        let left = end.map { max($0 - .now, .milliseconds(500)) } ?? revocationPatience
        let limit = min(revocationPatience, left)
        return await Task.detached {
            await withTaskGroup(of: Bool.self) { group in
                group.addTask { await revoke(tokens, at: endpoint) == nil }
                group.addTask {
                    try? await Task.sleep(for: limit)
                    return false
                }
                defer { group.cancelAll() }
                return await group.next() ?? false
            }
        }.value
    }

    /// Returns the tokens with their type hints, the refresh token first: most providers end the whole
    /// session with it.
    private static func named(_ tokens: TokenInfo) -> [(token: String, hint: String)] {
        let refreshToken = tokens.refreshToken.map { (token: $0, hint: "refresh_token") }
        return (refreshToken.map { [$0] } ?? []) + [(tokens.accessToken, "access_token")]
    }

    private func revoke(_ tokens: TokenInfo, at endpoint: WebAddress) async throws(RefreshFailure) {
        if let failure = await revoke(Self.named(tokens), at: endpoint) { throw failure }
    }

    private func revoke(
        _ tokens: [(token: String, hint: String)], at endpoint: WebAddress
    ) async -> RefreshFailure? {
        var first: RefreshFailure?
        for (token, hint) in tokens {
            guard let failure = await revoke(token, hint: hint, at: endpoint) else { continue }
            // Some providers cannot revoke access tokens (RFC 7009 section 2.2.1).
            if hint == "access_token", failure.kind == .refused("unsupported_token_type") { continue }
            first = first ?? failure
        }
        return first
    }

    private func revoke(_ token: String, hint: String, at endpoint: WebAddress) async -> RefreshFailure? {
        let form: FormEncoding.Fields = [("token", token), ("token_type_hint", hint)]
        do throws(RefreshFailure) {
            // The server also reports success for an unknown token.
            _ = try await post(form, to: endpoint)
            return nil
        } catch {
            return error
        }
    }
}
#endif
