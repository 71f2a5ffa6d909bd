public import TokenVault

/// Where somebody signs in: a name that the app and its sign-in code agree on.
public struct AuthProviderName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name.
    public let name: String

    /// A provider of that name.
    public init(_ name: String) { self.name = name }
    /// A provider of that name.
    public init(stringLiteral name: String) { self.name = name }

    /// The app's own server, with a name and a password.
    public static let password: Self = "password"
    /// Nobody in particular: see ``AuthenticationService/login(_:)``.
    public static let guest: Self = "guest"

    /// The name.
    public var description: String { name }
}

/// What somebody signs in with. Printing it shows nothing but the provider.
public struct SignInRequest: Sendable {
    /// Where.
    public var provider: AuthProviderName
    /// The name of the person's account there; `nil` where there is none to type.
    public var userName: String?
    /// A password, a code, an assertion; `nil` where there is none to type.
    public var credential: Secret?

    /// A request.
    public init(provider: AuthProviderName, userName: String? = nil, credential: Secret? = nil) {
        self.provider = provider
        self.userName = userName
        self.credential = credential
    }

    /// A guest.
    public static let guest = SignInRequest(provider: .guest)
}

extension SignInRequest: RedactedStringConvertible {
    /// Says where.
    public var description: String { "SignInRequest(\(provider))" }
}

/// What a sign-in gives.
public struct SignIn: Sendable {
    /// The tokens of the session.
    public var tokens: TokenInfo
    /// Who it is; `nil` when that was not told.
    public var user: AuthUser?

    /// A sign-in.
    public init(tokens: TokenInfo, user: AuthUser? = nil) {
        self.tokens = tokens
        self.user = user
    }
}

/// Signs somebody in at a server: what the app brings, with its HTTP client or `TokenVaultOAuth`. What it throws is thrown
/// by the login.
public typealias SignInProvider = @Sendable (SignInRequest) async throws -> SignIn
