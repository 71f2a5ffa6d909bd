public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The reason that there is no access token. No case has a token, an account or server text in it.
public enum TokenError: Error, Sendable, Equatable {
    /// The account is signed out, or was signed out during the call. Never reported for a storage that could
    /// not be read.
    case tokenNotFound
    /// The access token has expired and there is no refresh token.
    case refreshTokenMissing
    /// The refresh token has expired, according to its stored expiry and the program's
    /// ``TokenManager/Configuration/refreshTokenBuffer``.
    case refreshTokenExpired
    /// The refresh failed temporarily, or for a reason outside the session. `retryAfter` is the earliest time
    /// of the next attempt; calls before that time throw this error without asking the server.
    case refreshFailed(RefreshFailure, retryAfter: Date?)
    /// The server no longer accepts the refresh token: sign in again. The stored session was deleted.
    case sessionExpired
    /// The server refused a token that is only seconds old, which replaced another refused token. Another one
    /// would be refused as well: the tokens may be for another service, or a clock may be wrong.
    case tokenRefused
    /// The request needs a scope that the token does not have (RFC 6750 section 3.1): sign in with that scope.
    case scopeInsufficient
    /// The stored session has changed since the call began. Another user signed in, or the account was signed
    /// out while the server issued new tokens, which are revoked. Ask again for a token of the signed-in
    /// user.
    case sessionChanged
    /// The refresh succeeded and its tokens could not be stored. The manager keeps the tokens, and the next
    /// call stores them. No caller gets them before that.
    case notSaved(TokenStorageError)
    /// The storage could not be read or written: locked, unreachable or damaged. It is not known whether the
    /// account is signed in.
    case storage(TokenStorageError)
    /// The stored record of the account is not a session of a version that this program knows.
    case unknownRecord
    /// A token, a type or an account, given by the caller or the server, cannot be used.
    case malformed(String)
    /// The session was ended locally, but its revocation at the server failed. Its tokens may be valid until
    /// they expire.
    case notRevoked(RefreshFailure)
    /// Another process, or a provider that does not return, delayed the call for too long.
    case timedOut
    /// The task was cancelled. A refresh that other callers wait for goes on.
    case cancelled
}

extension TokenError: CustomStringConvertible {
    /// One line: the failure and the next step.
    public var description: String {
        switch self {
        case .tokenNotFound: "not signed in: sign in"
        case .refreshTokenMissing: "the access token has expired and there is no refresh token: sign in again"
        case .refreshTokenExpired: "the refresh token has expired: sign in again"
        case .refreshFailed(let failure, _):
            "\(failure): \(failure.isTemporary ? "try again later" : "check the client's settings")"
        case .sessionExpired: "the session is over: sign in again"
        case .tokenRefused: "the server refuses even a new token: check the audience, then sign in again"
        case .scopeInsufficient: "the token lacks a scope that the request needs: sign in with that scope"
        case .sessionChanged: "the session was replaced or ended meanwhile: ask for the token again"
        case .notSaved(let error): "the new tokens could not be stored yet: \(error)"
        case .storage(let error): "\(error)"
        case .unknownRecord:
            "the stored session has a format that this program does not know: use the newer program, or sign in again"
        case .malformed(let what): "\(what) cannot be used: check the given value"
        case .notRevoked(let failure): "signed out here, but \(failure): revoke the session at the server"
        case .timedOut: "timed out: try again"
        case .cancelled: "cancelled: this call changed nothing"
        }
    }
}
