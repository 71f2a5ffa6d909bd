// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

/// OAuthenticator's login.
public struct Login: Codable, Hashable, Sendable {
    public var accessToken: String
    public var refreshToken: String?

    public init(accessToken: String, refreshToken: String? = nil) {
        self.accessToken = accessToken
        self.refreshToken = refreshToken
    }
}

/// The shape of OAuthenticator's storage: three closures.
public struct LoginStorage: Sendable {
    public var retrieveLogin: @Sendable () async throws -> Login?
    public var storeLogin: @Sendable (Login) async throws -> Void
    public var clearLogin: @Sendable () async throws -> Void

    public init(
        retrieveLogin: @escaping @Sendable () async throws -> Login?,
        storeLogin: @escaping @Sendable (Login) async throws -> Void,
        clearLogin: @escaping @Sendable () async throws -> Void
    ) {
        self.retrieveLogin = retrieveLogin
        self.storeLogin = storeLogin
        self.clearLogin = clearLogin
    }
}
