// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

/// Okta's actor of everything about credentials.
@globalActor public actor CredentialActor {
    public static let shared = CredentialActor()
}

/// Okta's token.
public struct OktaToken: Codable, Equatable, Sendable {
    public var id: String
    public var accessToken: String
    public var refreshToken: String?

    public init(id: String, accessToken: String, refreshToken: String? = nil) {
        self.id = id
        self.accessToken = accessToken
        self.refreshToken = refreshToken
    }
}

/// What Okta keeps beside a token.
public struct OktaTokenMetadata: Codable, Equatable, Sendable {
    public var id: String
    public var tags: [String: String]

    public init(id: String, tags: [String: String] = [:]) {
        self.id = id
        self.tags = tags
    }
}

/// Who is told what happens in Okta's storage.
@CredentialActor public protocol OktaTokenStorageDelegate: AnyObject {
    func token(defaultChanged id: String?)
    func token(added id: String)
    func token(removed id: String)
    func token(replaced id: String)
}

/// The shape of Okta's storage: synchronous on its actor, throws when absent.
@CredentialActor public protocol OktaTokenStorage: AnyObject {
    var delegate: (any OktaTokenStorageDelegate)? { get set }
    var defaultTokenID: String? { get }
    func setDefaultTokenID(_ id: String?) throws
    var allIDs: [String] { get }
    func add(token: OktaToken, metadata: OktaTokenMetadata?, security: [String]) throws
    func setMetadata(_ metadata: OktaTokenMetadata) throws
    func metadata(for id: String) throws -> OktaTokenMetadata
    func replace(token id: String, with token: OktaToken, security: [String]) throws
    func remove(id: String) throws
    func get(token id: String, prompt: String?, authenticationContext: (any Sendable)?) throws -> OktaToken
}
