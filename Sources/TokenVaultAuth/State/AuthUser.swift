/// The signed-in user, as given at sign-in. Printing it shows no personal data.
public struct AuthUser: Codable, Hashable, Sendable {
    /// The identifier of the user at the provider, such as a subject or a user number.
    public var identifier: String
    /// The user's name; `nil` when the provider did not say.
    public var name: String?
    /// The user's email address; `nil` when the provider did not say.
    public var email: String?
    /// Whether the user is a guest without an account.
    public var isGuest: Bool

    /// Creates a user.
    public init(identifier: String, name: String? = nil, email: String? = nil, isGuest: Bool = false) {
        self.identifier = identifier
        self.name = name
        self.email = email
        self.isGuest = isGuest
    }
}

extension AuthUser: RedactedStringConvertible {}
