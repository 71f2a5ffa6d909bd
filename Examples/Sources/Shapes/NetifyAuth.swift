// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation

/// NetifyAuth's token.
public struct NetifyTokenInfo: Codable, Equatable, Sendable {
    public var accessToken: String
    public var refreshToken: String
    public var accessTokenExpiration: Date

    public init(accessToken: String, refreshToken: String, accessTokenExpiration: Date) {
        self.accessToken = accessToken
        self.refreshToken = refreshToken
        self.accessTokenExpiration = accessTokenExpiration
    }
}

/// The shape of NetifyAuth's storage: asynchronous, throws when absent.
public protocol NetifyTokenStorage: Sendable {
    func save(tokenInfo: NetifyTokenInfo, forKey key: String) async throws
    func load(forKey key: String) async throws -> NetifyTokenInfo
    func delete(forKey key: String) async throws
}
