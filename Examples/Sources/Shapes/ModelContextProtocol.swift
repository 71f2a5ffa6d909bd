// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

/// The token of the MCP swift-sdk.
public struct OAuthAccessToken: Codable, Equatable, Sendable {
    public var token: String
    public var refreshToken: String?

    public init(token: String, refreshToken: String? = nil) {
        self.token = token
        self.refreshToken = refreshToken
    }
}

/// The shape of the MCP swift-sdk's storage: synchronous, and nothing can be thrown.
public protocol MCPTokenStorage: Sendable {
    func save(_ token: OAuthAccessToken)
    func load() -> OAuthAccessToken?
    func clear()
}
