public import TokenVault

/// A provider to sign in at, under a name that the app and its sign-in code agree on.
public struct AuthProviderName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name.
    public let name: String

    /// Creates a provider with that name.
    public init(_ name: String) { self.name = name }
    /// Creates a provider with that name.
    public init(stringLiteral name: String) { self.name = name }

    /// The app's own server, with a name and a password.
    public static let password: Self = "password"
    /// A guest without an account: see ``AuthenticationService/login(_:)``.
    public static let guest: Self = "guest"

    /// The name.
    public var description: String { name }
}

/// The input of a sign-in. Printing it shows only the provider.
public struct SignInRequest: Sendable {
    /// The provider to sign in at.
    public var provider: AuthProviderName
    /// The name of the user's account at the provider; `nil` where there is none to type.
    public var userName: String?
    /// A password, a code or an assertion; `nil` where there is none to type.
    public var credential: Secret?

    /// Creates a request.
    public init(provider: AuthProviderName, userName: String? = nil, credential: Secret? = nil) {
        self.provider = provider
        self.userName = userName
        self.credential = credential
    }

    /// A sign-in as a guest.
    public static let guest = SignInRequest(provider: .guest)
}

extension SignInRequest: RedactedStringConvertible {
    /// The name of the provider.
    public var description: String { "SignInRequest(\(provider))" }
}

/// The result of a sign-in.
public struct SignIn: Sendable {
    /// The tokens of the session.
    public var tokens: TokenInfo
    /// The user; `nil` when the server did not say.
    public var user: AuthUser?

    /// Creates a sign-in result.
    public init(tokens: TokenInfo, user: AuthUser? = nil) {
        self.tokens = tokens
        self.user = user
    }
}

/// Signs a user in at a server. Supplied by the app, with its HTTP client or `TokenVaultOAuth`. The login
/// passes its errors on.
public typealias SignInProvider = @Sendable (SignInRequest) async throws -> SignIn
