/// What is known of an account without asking the server.
public enum SessionState: Sendable, Hashable {
    /// Nobody is signed in.
    case signedOut
    /// There is a session. Whether the server still accepts it is another question.
    case signedIn
    /// The session cannot be read, since the storage is locked. `wasSignedIn` tells whether there was one, where that can be
    /// read from the first unlock on; `nil` where it cannot.
    case locked(wasSignedIn: Bool?)
}
