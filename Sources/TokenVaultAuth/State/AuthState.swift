/// Whether the account is signed in, according to the storage. No server is asked.
public enum AuthState: Sendable, Equatable {
    /// The storage was not read yet. Choose no screen by this state.
    case unknown
    /// The account is signed out.
    case signedOut
    /// The account is signed in. The server may no longer accept the session.
    case signedIn(AuthUser?)
    /// A guest session is stored, perhaps without tokens.
    case guest(AuthUser)
    /// The session cannot be read, since the storage is locked. `wasSignedIn` says whether there is a
    /// session. The flag for that is readable after the first unlock; `nil` when it is not.
    case locked(wasSignedIn: Bool?)
    /// The session cannot be read for another reason.
    case unavailable(TokenError)

    /// Whether there is a session that was read.
    public var isSignedIn: Bool {
        switch self {
        case .signedIn, .guest: true
        case .unknown, .signedOut, .locked, .unavailable: false
        }
    }

    /// The signed-in user; `nil` when the account is signed out, or the sign-in gave no user.
    public var user: AuthUser? {
        switch self {
        case .signedIn(let user): user
        case .guest(let user): user
        case .unknown, .signedOut, .locked, .unavailable: nil
        }
    }
}
