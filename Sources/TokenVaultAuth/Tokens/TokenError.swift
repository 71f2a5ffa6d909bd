public import TokenVault

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// Why there is no access token. None of them carries a token, an account or a text of the server's.
public enum TokenError: Error, Sendable, Equatable {
    /// Nobody is signed in, or not any more since the call began: known, not guessed from a storage that could not be read.
    case tokenNotFound
    /// The access token is at its end and there is no refresh token.
    case refreshTokenMissing
    /// The refresh token is at its end, as far as the server told when that would be, and the program set a
    /// ``TokenManager/Configuration/refreshTokenBuffer``.
    case refreshTokenExpired
    /// The refresh failed for now, or for a reason that is not the session's. `retryAfter` is the earliest time of the
    /// next attempt; calls before that fail with this without asking the server.
    case refreshFailed(RefreshFailure, retryAfter: Date?)
    /// The server does not accept the refresh token any more: sign in again. The stored session is gone.
    case sessionExpired
    /// The session that the call began with is not the one that is stored now: another user signed in, or somebody signed out
    /// while the server made new tokens, which are revoked. Ask again for a token of who is signed in.
    case sessionChanged
    /// The refresh succeeded and its tokens could not be stored. They are kept and stored by the next call; nobody sees
    /// them before.
    case notSaved(TokenStorageError)
    /// The storage could not be read or written: locked, unreachable, damaged. Whether somebody is signed in is not known.
    case storage(TokenStorageError)
    /// What is stored for the account is not a session of a version that this program knows.
    case unknownRecord
    /// A token, a type or an account that was given, or that the server gave, cannot be used.
    case malformed(String)
    /// Signed out here, but the server could not be told: what it gave may be good until it expires.
    case notRevoked(RefreshFailure)
    /// Another process, or a provider that does not return, kept the call from its token for too long.
    case timedOut
    /// The task was cancelled. A refresh that others wait for goes on.
    case cancelled
}

extension TokenError: CustomStringConvertible {
    /// One line: what happened and what to do next.
    public var description: String {
        switch self {
        case .tokenNotFound: "nobody is signed in: sign in"
        case .refreshTokenMissing: "the access token has expired and there is no refresh token: sign in again"
        case .refreshTokenExpired: "the refresh token has expired: sign in again"
        case .refreshFailed(let failure, _):
            "\(failure): \(failure.isTemporary ? "try again later" : "look at the client's settings")"
        case .sessionExpired: "the session is over: sign in again"
        case .sessionChanged: "somebody else signed in meanwhile, or signed out: ask again"
        case .notSaved(let error): "the new tokens could not be stored yet: \(error)"
        case .storage(let error): "\(error)"
        case .unknownRecord:
            "what is stored is not a session that this program knows: use the newer one, or sign in again"
        case .malformed(let what): "\(what) cannot be used: look at what was given"
        case .notRevoked(let failure): "signed out here, but \(failure): revoke the session at the server"
        case .timedOut: "timed out: try again"
        case .cancelled: "cancelled: nothing was changed by this call"
        }
    }
}
