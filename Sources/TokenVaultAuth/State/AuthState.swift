/// Whether somebody is signed in, as the storage tells: no server is asked.
public enum AuthState: Sendable, Equatable {
    /// Not looked yet. No screen should be chosen by it.
    case unknown
    /// Nobody is signed in.
    case signedOut
    /// Somebody is. Whether the server still accepts the session is another question.
    case signedIn(AuthUser?)
    /// A guest is: nobody in particular, perhaps without tokens.
    case guest(AuthUser)
    /// The session cannot be read, since the storage is locked. `wasSignedIn` tells whether there is one, where that can be
    /// read from the first unlock on; `nil` where it cannot.
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

    /// Who is signed in; `nil` when nobody is, or the sign-in did not tell.
    public var user: AuthUser? {
        switch self {
        case .signedIn(let user): user
        case .guest(let user): user
        case .unknown, .signedOut, .locked, .unavailable: nil
        }
    }
}
