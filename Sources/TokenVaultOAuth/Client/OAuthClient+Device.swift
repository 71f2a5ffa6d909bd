#if OAuth
internal import TokenVault
public import TokenVaultAuth

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The codes and addresses of a sign-in with another device (RFC 8628 section 3.2). All text is visible
/// ASCII, and safe to print on a terminal.
public struct DeviceAuthorization: Sendable {
    /// The code that the user types in.
    public let userCode: String
    /// The address where the user types the code in.
    public let verificationURI: String
    /// The same address with the code in it, for a QR code; `nil` when the provider gives none.
    public let verificationURIComplete: String?
    /// The expiry of the code, by this machine's clock.
    public let expiry: Date
    /// The pause between requests.
    public let interval: Duration
    let deviceCode: Secret
    let scopes: [String]
}

extension OAuthClient {
    /// Requests a code that the user types in on another device. Throws `foreignEndpoint` when the endpoint is at an
    /// origin that is not allowed. Throws `unsupported` without the endpoint, or if ``usesDPoP`` cannot be honored, and `requestFailed`,
    /// `malformedResponse`, `cancelled`.
    public func authorizeDevice(scopes: [String]) async throws(OAuthError) -> DeviceAuthorization {
        let endpoint = try provider.address(
            .deviceAuthorization, provider.deviceAuthorizationEndpoint, for: "the device grant")
        _ = try newDPoPKey()
        let begun = clock()
        // The form has the client's name for every kind of authentication (RFC 8628 section 3.1).
        var form = try Scopes.fields(scopes) + parameters.ofAuthorization
        if case .clientSecretBasic = authentication { form.append(("client_id", clientID)) }
        let answer: OAuthTransport.Answer
        do throws(RefreshFailure) { answer = try await post(form, to: endpoint) } catch {
            throw Task.isCancelled ? .cancelled : .requestFailed(error.withoutRefreshToken)
        }
        return try DeviceAuthorization(answer.body, begun: begun, scopes: scopes)
    }

    /// Waits until the user has granted access. Asks at the provider's interval, which grows by five seconds
    /// at each `slow_down`, and doubles after a broken connection (RFC 8628 section 3.5). With the scope
    /// `openid`, only some providers return an ID token; this grant does not require it.
    ///
    /// Throws `accessDenied`, `timedOut` at the code's expiry, `requestFailed`, `malformedResponse`,
    /// `invalidIDToken`, `tokensNotRevoked`, `cancelled`. If the last answer was lost, throws `requestFailed`
    /// instead of `timedOut` or `cancelled`: the user may have granted access.
    public func signIn(with device: DeviceAuthorization) async throws(OAuthError) -> SignInResult {
        // The shortest pause that the provider accepts, and the next pause, which is longer after a broken connection.
        var (interval, pause) = (device.interval, device.interval)
        var required = device.interval
        // The failure of the last request, if its answer was lost or unusable: that request may have
        // succeeded.
        var lost: RefreshFailure?
        let dpopKey = try newDPoPKey()
        while true {
            let late = lost.map { OAuthError.requestFailed($0.ofGrant) }
            var left = Duration.seconds(device.expiry.timeIntervalSince(clock()))
            if let end { left = min(left, end - .now) }
            // A request later would have no answer in time.
            guard required < left else { throw late ?? .timedOut }
            // The client's own longer pause leaves time for a last request.
            let wait = max(required, min(pause, left - .seconds(1)))
            required = interval
            do { try await sleep(wait) } catch { throw late ?? .cancelled }
            let begun = clock()
            let form: FormEncoding.Fields = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
                ("device_code", device.deviceCode.unprotectedText() ?? ""),
            ]
            switch await askToTheEnd(form + parameters.ofToken, dpopKey: dpopKey) {
            case .success(let response):
                return try await result(
                    response, begun: begun, nonce: nil, scopes: device.scopes, requiresIDToken: false)
            case .failure(.useless(let error, _)): throw error
            case .failure(.failed(let failure)):
                switch failure.kind {
                case .refused("authorization_pending"): lost = nil
                case .refused("slow_down"):
                    lost = nil
                    interval += .seconds(5)
                    pause += .seconds(5)
                    required = interval
                case .refused("access_denied"): throw .accessDenied
                case .refused("expired_token"): throw late ?? .timedOut
                case .notSent, .interrupted, .timedOut, .serverError, .throttled:
                    if failure.leavesOutcomeUnknown { lost = failure }
                    if Task.isCancelled { throw lost.map { .requestFailed($0.ofGrant) } ?? .cancelled }
                    pause = max(interval, min(pause * 2, .seconds(60)))
                    if let wait = failure.retryAfter.map({ $0.timeIntervalSince(clock()) }) {
                        required = max(interval, .seconds(min(wait, 3_600)))
                        pause = max(pause, required)
                    }
                default:
                    // The code is no longer valid, perhaps because the request with the lost answer used it.
                    let failure = failure.withoutRefreshToken
                    throw .requestFailed(lost == nil ? failure : failure.ofGrant)
                }
            }
        }
    }

    /// Returns the result of a sign-in after checking its ID token. Waits for the provider's keys for a
    /// bounded time. Revokes the tokens if the ID token is rejected. Throws `tokensNotRevoked` when the
    /// revocation failed.
    func result(
        _ response: TokenResponse, begun: Date, nonce: String?, scopes: [String], requiresIDToken: Bool = true
    ) async throws(OAuthError) -> SignInResult {
        let tokens = response.tokens(begun: begun, scopes: scopes)
        var claims: IDTokenClaims?
        do throws(OAuthError) {
            if let idToken = response.idToken {
                claims = try await validated(
                    idToken, expecting: IDTokenExpectation(nonce: nonce, accessToken: response.accessToken),
                    serverDate: response.serverDate)
            } else if requiresIDToken, scopes.contains("openid") {
                throw .invalidIDToken(.missing)
            }
        } catch {
            throw await revokeUnused(tokens) ? error : .tokensNotRevoked(error)
        }
        return response.result(tokens, claims)
    }

    /// Returns the claims of a sign-in's ID token. Also throws `requestFailed` with `timedOut` when its keys
    /// do not arrive. The rest of the time is then left for revoking the tokens.
    private func validated(
        _ idToken: String, expecting expectation: IDTokenExpectation, serverDate: Date?
    ) async throws(OAuthError) -> IDTokenClaims {
        let limit = min(signInPatience, end.map { ($0 - .now) * 0.6 } ?? signInPatience)
        let outcome = await withTaskGroup(of: Result<IDTokenClaims, OAuthError>.self) { group in
            group.addTask {
                do throws(OAuthError) {
                    return .success(
                        try await idTokenValidator.validate(
                            idToken, expecting: expectation, serverDate: serverDate))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do { try await Timeout.end(after: max(limit, .zero)) } catch { return .failure(.cancelled) }
                return .failure(.requestFailed(RefreshFailure(.timedOut)))
            }
            defer { group.cancelAll() }
            return await group.next() ?? .failure(.cancelled)
        }
        return try outcome.get()
    }
}

extension DeviceAuthorization {
    private struct Document: Decodable {
        let deviceCode: String
        let userCode: String
        // The name that Google used before the RFC.
        let verificationUri: String?
        let verificationUrl: String?
        let verificationUriComplete: String?
        let expiresIn: Lifetime
        let interval: Lifetime?
    }

    init(_ body: [UInt8], begun: Date, scopes: [String]) throws(OAuthError) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let document = try? decoder.decode(Document.self, from: Data(body)) else {
            throw .malformedResponse("the document")
        }
        let isVisible = { (text: String) in
            !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
        }
        guard isVisible(document.deviceCode) else { throw .malformedResponse("the device code") }
        guard isVisible(document.userCode), document.userCode.utf8.count <= 64 else {
            throw .malformedResponse("the user's code")
        }
        guard let address = document.verificationUri ?? document.verificationUrl,
            WebAddress.secure(address) != nil,
            document.verificationUriComplete.map({ WebAddress.secure($0) != nil }) ?? true
        else { throw .malformedResponse("the verification address") }
        userCode = document.userCode
        verificationURI = address
        verificationURIComplete = document.verificationUriComplete
        expiry = begun.addingTimeInterval(document.expiresIn.seconds)
        // RFC 8628 section 3.2: the default is five seconds.
        interval = .seconds(min(max(document.interval?.seconds ?? 5, 1), 600))
        deviceCode = Secret(utf8: document.deviceCode)
        self.scopes = scopes
    }
}

/// Redacted, since the codes are for the user only.
extension DeviceAuthorization: RedactedStringConvertible {}
#endif
