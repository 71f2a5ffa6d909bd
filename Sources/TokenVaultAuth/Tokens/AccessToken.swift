internal import Synchronization
public import TokenVault

/// An access token and the session that it belongs to, as sent with a request. Printing it shows no token.
public struct AccessToken: Sendable, Equatable {
    /// The token, in memory that is wiped.
    public let secret: Secret
    /// The token type, usually `Bearer`.
    public let type: String
    /// The private key that the token is bound to, in PEM (RFC 9449); `nil` for a bearer token.
    public let dpopKey: Secret?
    let session: String
    private let header = HeaderText()

    init(_ record: SessionRecord) {
        secret = record.tokens.accessSecret
        type = record.tokens.tokenType
        dpopKey = record.tokens.dpopKey
        session = record.session
    }

    /// The token as text, in a string that is not wiped.
    public var text: String { secret.text }

    /// Returns the header's value: the token after `prefix` and a space, or the token alone.
    func headerValue(after prefix: String?) -> String { header.text(of: secret, after: prefix) }

    /// Whether both are the same token of the same session.
    public static func == (one: AccessToken, other: AccessToken) -> Bool {
        one.secret == other.secret && one.type == other.type && one.session == other.session
    }
}

extension AccessToken: RedactedStringConvertible {}

/// The header value for all requests with one token, released together with the token. Without this cache
/// each request would leave an unwiped copy, and add about 5 % to a request to this machine.
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
