#if OAuth
public import TokenVaultAuth

/// Why a sign-in, or another exchange with a provider, did not succeed. None of them carries a token, a code, a secret or a
/// text of the server's beyond an `error` code that is one word of letters and underscores.
public indirect enum OAuthError: Error, Sendable, Equatable {
    /// An address, a name or a setting that was given cannot be used; the text says which.
    case invalid(String)
    /// What the provider says of itself cannot be used (RFC 8414 section 3.3); the text says which part.
    case invalidMetadata(String)
    /// The provider found at an issuer's address has another name (RFC 8414 section 3.3).
    case issuerDiffers(IssuerDifference)
    /// The provider does not offer what was asked for; the text says what.
    case unsupported(String)
    /// A request failed. `RefreshFailure.Kind.refused` has the provider's `error` code; `invalid_grant` is of a
    /// code or an assertion that is not accepted any more.
    case requestFailed(RefreshFailure)
    /// The provider answered with what no client can use; the text says which part.
    case malformedResponse(String)
    /// The person said no (`access_denied`).
    case accessDenied
    /// The provider ended the authorization with this `error` code (RFC 6749 section 4.1.2.1).
    case authorizationRefused(String)
    /// The answer of a browser is from another provider than the one that was asked (RFC 9207).
    case wrongIssuer
    /// The answer of a browser is to another request than this one: its `state` differs.
    case wrongState
    /// The person did not answer in time.
    case timedOut
    /// No port of the loopback could be listened on.
    case cannotListen
    /// The ID token is not accepted.
    case invalidIDToken(IDTokenProblem)
    /// The task was cancelled.
    case cancelled
    /// Tokens came that are not used, for this reason, and the provider could not be told that they are over: they may be
    /// good there until they expire.
    case tokensNotRevoked(OAuthError)
}

extension OAuthError: CustomStringConvertible {
    /// One line: what happened and what to do next.
    public var description: String {
        switch self {
        case .invalid(let what): "\(what) cannot be used: look at what was given"
        case .invalidMetadata(let what):
            "\(what) in the provider's metadata cannot be used: look at the issuer's address"
        case .issuerDiffers(let difference):
            "the issuer\(difference.note) in the provider's metadata cannot be used: look at the issuer's address"
        case .unsupported(let what): "the provider does not offer \(what): use another way to sign in"
        case .requestFailed(let failure):
            "\(failure): \(failure.isTemporary ? "try again later" : "look at the client's settings")"
        case .malformedResponse(let what):
            "\(what) of the provider's answer cannot be used: tell the provider"
        case .accessDenied: "the person refused: sign in again"
        case .authorizationRefused(let code):
            "the provider refused (\(code)): look at the client's settings and scopes"
        case .wrongIssuer: "another provider answered than the one that was asked: do not sign in there"
        case .wrongState: "the answer is to another request: sign in again"
        case .timedOut: "nobody answered in time: sign in again"
        case .cannotListen: "no port of this machine could be listened on: use the device grant"
        case .invalidIDToken(let problem): "the ID token is not accepted (\(problem)): sign in again"
        case .cancelled: "cancelled: nobody was signed in"
        case .tokensNotRevoked(let error):
            "\(error); what the provider gave could not be revoked: end the session at the provider"
        }
    }
}

/// How the name that a provider gives itself differs from the issuer that was asked for.
public enum IssuerDifference: Sendable, Equatable, CaseIterable {
    /// It is another name.
    case otherName
    /// The provider's name has a slash at its end, and the issuer has none.
    case slashInMetadata
    /// The issuer has a slash at its end, and the provider's name has none.
    case slashInIssuer

    var note: String {
        switch self {
        case .otherName: ""
        case .slashInMetadata: " (with a slash at its end)"
        case .slashInIssuer: " (without a slash at its end)"
        }
    }
}

/// What is wrong with an ID token (OpenID Connect Core section 3.1.3.7).
public enum IDTokenProblem: String, Error, Sendable, Equatable, CaseIterable, CustomStringConvertible {
    /// None came, though it was asked for.
    case missing
    /// It is not a signed JWT of an object with the claims that are required.
    case malformed
    /// It is not signed by an algorithm that is accepted: `none`, one with a shared secret, or one that was not agreed on.
    case algorithm
    /// The provider's key set has no key that could have signed it.
    case unknownKey = "unknown key"
    /// The signature is wrong.
    case signature
    /// It is from another issuer.
    case issuer
    /// It is for another client, or also for clients that are not known.
    case audience
    /// It was given to another client (`azp`).
    case authorizedParty = "authorized party"
    /// It has expired.
    case expired
    /// It is not valid yet, or was issued in the future.
    case notYetValid = "not yet valid"
    /// It is the answer to another request: `nonce` differs.
    case nonce
    /// It belongs to another access token (`at_hash`).
    case accessTokenHash = "access token hash"
    /// It is of another person than the one who signed in.
    case subject

    /// The name, in words.
    public var description: String { rawValue }
}
#endif
