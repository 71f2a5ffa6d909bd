internal import Synchronization
public import TokenVault

/// An access token, and which session it is of: what a request was sent with. Printing it shows no token.
public struct AccessToken: Sendable, Equatable {
    /// The token, in memory that is wiped.
    public let secret: Secret
    /// How it is presented, `Bearer` mostly.
    public let type: String
    let session: String
    private let header = HeaderText()

    init(_ record: SessionRecord) {
        secret = record.tokens.accessSecret
        type = record.tokens.tokenType
        session = record.session
    }

    /// The token as text, in a string that nobody wipes.
    public var text: String { secret.text }

    /// What a header says: the token after `prefix` and a space, or alone.
    func headerValue(after prefix: String?) -> String { header.text(of: secret, after: prefix) }

    /// Whether both are the same token of the same session.
    public static func == (one: AccessToken, other: AccessToken) -> Bool {
        one.secret == other.secret && one.type == other.type && one.session == other.session
    }
}

extension AccessToken: RedactedStringConvertible {}

/// What requests say of a token: one string for all of them, which goes with the token. A string of its own for each would
/// be as many copies that nobody wipes, and a twentieth of a request to this machine.
private final class HeaderText: Sendable {
    private let made = Mutex<(prefix: String?, text: String)?>(nil)

    func text(of secret: Secret, after prefix: String?) -> String {
        made.withLock { made in
            if let made, made.prefix == prefix { return made.text }
            let text = prefix.map { "\($0) \(secret.text)" } ?? secret.text
            made = (prefix, text)
            return text
        }
    }
}
