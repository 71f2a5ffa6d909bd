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
