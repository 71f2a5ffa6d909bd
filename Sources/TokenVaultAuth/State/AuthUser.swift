/// Who is signed in, as the sign-in told. Printing it shows nothing of the person.
public struct AuthUser: Codable, Hashable, Sendable {
    /// What tells the person from others at the provider: a subject, a user number.
    public var identifier: String
    /// The person's name; `nil` when it was not told.
    public var name: String?
    /// The person's address; `nil` when it was not told.
    public var email: String?
    /// Whether nobody in particular is meant.
    public var isGuest: Bool

    /// A person.
    public init(identifier: String, name: String? = nil, email: String? = nil, isGuest: Bool = false) {
        self.identifier = identifier
        self.name = name
        self.email = email
        self.isGuest = isGuest
    }
}

extension AuthUser: RedactedStringConvertible {}
