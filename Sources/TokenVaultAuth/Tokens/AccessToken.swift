public import TokenVault

/// An access token, and which session it is of: what a request was sent with. Printing it shows no token.
public struct AccessToken: Sendable, Equatable {
    /// The token, in memory that is wiped.
    public let secret: Secret
    /// How it is presented, `Bearer` mostly.
    public let type: String
    let session: String

    init(_ record: SessionRecord) {
        secret = record.tokens.accessSecret
        type = record.tokens.tokenType
        session = record.session
    }

    /// The token as text, in a string that nobody wipes.
    public var text: String { secret.text }
}

extension AccessToken: PrintedWithoutContents {}
