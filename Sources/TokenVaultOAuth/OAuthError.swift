#if OAuth
public import TokenVaultAuth

/// The reason that a sign-in or another exchange with a provider failed. No case has a token, a code or a secret in it.
/// The only server texts are an `error` code and the checked address of a redirection or an endpoint. The `error` code
/// is one word of letters and underscores.
public indirect enum OAuthError: Error, Sendable, Equatable {
    /// An address, a name or a setting cannot be used; the text says which.
    case invalid(String)
    /// The client's private key cannot be used: it is no RSA key of 2,048 bits or more, and not on an accepted curve.
    case invalidKey
    /// The provider's metadata cannot be used (RFC 8414 section 3.3); the text names the part.
    case invalidMetadata(String)
    /// The provider at the issuer's address has another name (RFC 8414 section 3.3).
    case issuerDiffers(IssuerDifference)
    /// The metadata is at another address, which is not asked; `nil` for one that cannot be used or shown.
    case redirected(to: String?)
    /// The provider's metadata sends the user to this origin, which is not the issuer's and not allowed (RFC
    /// 9700 section 4.4).
    case foreignEndpoint(String)
    /// The provider does not support the request; the text says which part.
    case unsupported(String)
    /// A request failed. `RefreshFailure.Kind.refused` has the provider's `error` code; `invalid_grant` means
    /// that a code or an assertion is no longer accepted.
    case requestFailed(RefreshFailure)
    /// No client can use the provider's response; the text names the part.
    case malformedResponse(String)
    /// The user denied access (`access_denied`).
    case accessDenied
    /// The provider ended the authorization with this `error` code (RFC 6749 section 4.1.2.1).
    case authorizationRefused(String)
    /// The browser's answer comes from another provider (RFC 9207).
    case wrongIssuer
    /// The browser's answer belongs to another request: its `state` differs.
    case wrongState
    /// The user did not answer in time.
    case timedOut
    /// The program could not listen on a loopback port.
    case cannotListen
    /// The ID token was rejected.
    case invalidIDToken(IDTokenProblem)
    /// The task was cancelled.
    case cancelled
    /// Tokens arrived that are not used, for this reason, and they could not be revoked. They may be valid at
    /// the provider until they expire.
    case tokensNotRevoked(OAuthError)
}

extension OAuthError: CustomStringConvertible {
    /// One line: the failure and the next step.
    public var description: String {
        switch self {
        case .invalid(let what): "\(what) cannot be used: check the given value"
        case .invalidKey:
            "the client's key cannot be used: use RSA with 2,048 bits or more, or P-256, P-384 or P-521"
        case .invalidMetadata(let what):
            "\(what) in the provider's metadata cannot be used: check the issuer's address"
        case .issuerDiffers(.tenantPlaceholder):
            "the provider's metadata is for all tenants: give one tenant's issuer, with its ID in place of {tenantid}"
        case .redirected(let address):
            "the provider's metadata is at another address (\(address ?? "an unusable one")): check the issuer's address"
        case .issuerDiffers(let difference):
            "the issuer\(difference.note) in the provider's metadata cannot be used: check the issuer's address"
        case .foreignEndpoint(let origin):
            "the provider's metadata sends the user to \(origin): allow that origin if the user signs in there"
        case .unsupported(let what): "the provider does not offer \(what): use another way to sign in"
        case .requestFailed(let failure):
            "\(failure): \(failure.isTemporary ? "try again later" : "check the client's settings")"
        case .malformedResponse(let what):
            "\(what) of the provider's answer cannot be used: report it to the provider"
        case .accessDenied: "the user refused: sign in again"
        case .authorizationRefused(let code):
            "the provider refused (\(code)): check the client's settings and scopes"
        case .wrongIssuer: "the answer is from another provider: do not sign in there"
        case .wrongState: "the answer is to another request: sign in again"
        case .timedOut: "the sign-in was not completed in time: sign in again"
        case .cannotListen: "no local port could be opened: use the device grant"
        case .invalidIDToken(let problem): "the ID token is not accepted (\(problem)): sign in again"
        case .cancelled: "cancelled: the user was not signed in"
        case .tokensNotRevoked(let error):
            "\(error); the issued tokens could not be revoked: end the session at the provider"
        }
    }
}

/// The difference between the provider's own name and the requested issuer.
public enum IssuerDifference: Sendable, Equatable, CaseIterable {
    /// The provider has another name.
    case otherName
    /// The provider's name has a slash at its end, and the issuer has none.
    case slashInMetadata
    /// The issuer has a slash at its end, and the provider's name has none.
    case slashInIssuer
    /// The provider's name has the text `{tenantid}` for the number of a tenant, as Microsoft's metadata for all tenants has.
    case tenantPlaceholder

    var note: String {
        switch self {
        case .otherName, .tenantPlaceholder: ""
        case .slashInMetadata: " (with a slash at its end)"
        case .slashInIssuer: " (without a slash at its end)"
        }
    }
}

/// A problem of an ID token (OpenID Connect Core section 3.1.3.7).
public enum IDTokenProblem: String, Error, Sendable, Equatable, CaseIterable, CustomStringConvertible {
    /// The ID token is missing, though it was requested.
    case missing
    /// The ID token is not a signed JWT of an object with the required claims.
    case malformed
    /// The algorithm is not accepted: `none`, an algorithm with a shared secret, or an algorithm that is not
    /// allowed.
    case algorithm
    /// The provider's key set has no key that could have signed the ID token.
    case unknownKey = "unknown key"
    /// The signature is wrong.
    case signature
    /// The issuer differs.
    case issuer
    /// The ID token is for another client, or also for unknown clients.
    case audience
    /// The ID token was issued to another client (`azp`).
    case authorizedParty = "authorized party"
    /// The ID token has expired.
    case expired
    /// The ID token is not valid yet, or was issued in the future.
    case notYetValid = "not yet valid"
    /// The ID token belongs to another request: `nonce` differs.
    case nonce
    /// The ID token belongs to another access token (`at_hash`).
    case accessTokenHash = "access token hash"
    /// The ID token is for another user than the signed-in user.
    case subject

    /// The name, in words.
    public var description: String { rawValue }
}
#endif
