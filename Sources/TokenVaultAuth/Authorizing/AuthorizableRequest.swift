#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A request of an HTTP client that can carry an access token.
public protocol AuthorizableRequest: Sendable {
    /// Where it goes; `nil` when that cannot be told: it gets no token then.
    var origin: RequestOrigin? { get }
    /// Whether it can be sent a second time as it is: its body is none, or is kept.
    var isReplayable: Bool { get }
    /// Gives the header `name` the one value `value`, in place of any it had.
    mutating func setHeader(_ name: String, to value: String)
}

/// What of a response matters to authorization.
public struct ResponseMetadata: Sendable {
    /// The status code.
    public var status: Int
    /// The `Date` header, if there was one that can be read.
    public var serverDate: Date?

    /// The facts of a response.
    public init(status: Int, serverDate: Date? = nil) {
        self.status = status
        self.serverDate = serverDate
    }
}

/// A request as it is to be sent, and the token it carries.
public struct AuthorizedRequest<Request: AuthorizableRequest>: Sendable {
    /// The request, with its header.
    public var request: Request
    /// The token that was put in; `nil` for an origin that is given none.
    public let token: AccessToken?
    /// Whether this is the second and last time.
    public let isRetry: Bool
}

extension AuthorizedRequest: RedactedStringConvertible {}
