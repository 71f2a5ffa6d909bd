#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A request of an HTTP client that can carry an access token.
public protocol AuthorizableRequest: Sendable {
    /// The origin that the request goes to; `nil` when it cannot be determined. The request then gets no
    /// token.
    var origin: RequestOrigin? { get }
    /// Whether the request can be sent a second time unchanged: it has no body, or its body is kept.
    var isReplayable: Bool { get }
    /// Sets the header `name` to the single value `value`. Replaces any previous values.
    mutating func setHeader(_ name: String, to value: String)
}

/// The parts of a response that matter to authorization.
public struct ResponseMetadata: Sendable {
    /// The status code.
    public var status: Int
    /// The time of the `Date` header; `nil` if the header is missing or unreadable.
    public var serverDate: Date?

    /// Creates the metadata of a response.
    public init(status: Int, serverDate: Date? = nil) {
        self.status = status
        self.serverDate = serverDate
    }
}

/// A request that is ready to be sent, and the token that it carries.
public struct AuthorizedRequest<Request: AuthorizableRequest>: Sendable {
    /// The request, with its header.
    public var request: Request
    /// The token in the header; `nil` for an origin that gets none.
    public let token: AccessToken?
    /// Whether this is the second and last attempt.
    public let isRetry: Bool
}

extension AuthorizedRequest: RedactedStringConvertible {}
