package import TokenVault

/// The settings of a sign-in and the provider's metadata, stored under a name so that they are given once.
package struct Profile: Sendable, Equatable {
    /// The version that has all of these members.
    package static let currentVersion = 4

    package var version = Profile.currentVersion
    /// The settings of the last sign-in.
    package let settings: SignInSettings
    /// The provider's metadata as JSON (RFC 8414).
    package var metadata: String
    /// The way that the client authenticates at the provider.
    package let authentication: ClientAuthenticationMethod

    /// Creates the profile of a sign-in with `settings`, with the metadata that the provider gave.
    package init(
        _ settings: SignInSettings, metadata: String, authentication: ClientAuthenticationMethod
    ) {
        self.settings = settings
        self.metadata = metadata
        self.authentication = authentication
    }

    /// The provider and client that issued a session's tokens and may receive them.
    package var source: TokenSource { settings.source }

    /// Whether the provider accepts revocations.
    package var offersRevocation: Bool { Self.metadata(metadata)?.revocationEndpoint != nil }

    private static func metadata(_ document: String) -> Metadata? {
        try? Secret(utf8: document).decode(Metadata.self)
    }

    /// The address where a browser ends the user's own session at the provider (OpenID Connect RP-Initiated Logout
    /// section 2). The value is `nil` when the provider has no usable address at its own origin or an allowed one. The
    /// address has no token in it, so the provider may ask the user again.
    package var endSessionAddress: String? {
        guard let endpoint = Self.metadata(metadata)?.endSessionEndpoint,
            let origin = RequestOrigin(address: endpoint), origin.keepsSecrets,
            origin == RequestOrigin(address: settings.issuer)
                || settings.allowedOrigins.contains(origin.text),
            // The query is appended to the address, and a fragment would swallow it.
            !endpoint.contains("#")
        else { return nil }
        let client = settings.clientID.utf8.map { Self.encoded($0) }.joined()
        return endpoint + (endpoint.contains("?") ? "&" : "?") + "client_id=" + client
    }

    /// Returns the byte in a query (RFC 3986 section 2.3).
    private static func encoded(_ byte: UInt8) -> String {
        let character = Character(Unicode.Scalar(byte))
        guard character.isASCII, character.isLetter || character.isNumber || "-._~".contains(character) else {
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
        return String(character)
    }

    /// The parts of the provider's metadata that a program without the OAuth code needs.
    private struct Metadata: Decodable {
        let revocationEndpoint: String?
        let endSessionEndpoint: String?
        private enum CodingKeys: String, CodingKey {
            case revocationEndpoint = "revocation_endpoint"
            case endSessionEndpoint = "end_session_endpoint"
        }
    }
}

/// One JSON object with the members of `settings`, `version`, `metadata`, `authentication` and `hasIssuerPath`.
extension Profile: Codable {
    private enum CodingKeys: String, CodingKey {
        case version, metadata, authentication
        /// Whether the default redirect path contains the issuer. Absent in version 1, which had only `/callback`.
        case hasIssuerPath
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        var settings = try SignInSettings(from: decoder)
        if settings.redirect == nil, try values.decodeIfPresent(Bool.self, forKey: .hasIssuerPath) == nil {
            settings.redirect = .former
            settings.redirect?.port = settings.redirectPort
        }
        self.init(
            settings, metadata: try values.decode(String.self, forKey: .metadata),
            authentication: try values.decode(ClientAuthenticationMethod.self, forKey: .authentication))
        version = try values.decode(Int.self, forKey: .version)
    }

    package func encode(to encoder: any Encoder) throws {
        try settings.encode(to: encoder)
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(version, forKey: .version)
        try values.encode(metadata, forKey: .metadata)
        try values.encode(authentication, forKey: .authentication)
        try values.encode(true, forKey: .hasIssuerPath)
    }
}

/// Printing a profile shows no secret.
extension Profile: RedactedStringConvertible {}

/// A stored profile.
package struct StoredProfile: Sendable {
    /// The decoded profile; `nil` when a newer program stored it.
    package let content: Profile?
    /// The stored bytes of the profile.
    let secret: Secret
    /// The policy; `nil` when a session without the root key chose it.
    package let policy: AccessPolicy?
    let generation: Generation

    init(_ item: TokenItem) {
        let profile = try? item.secret.decode(Profile.self)
        content = profile.flatMap { (1...Profile.currentVersion).contains($0.version) ? $0 : nil }
        secret = item.secret
        policy = item.metadata.isPolicyFromLimitedSession ? nil : item.metadata.policy
        generation = item.metadata.generation
    }
}
