package import TokenVault

/// A client's way to authenticate, by its name in a provider's metadata (RFC 7591 section 2).
package enum ClientAuthenticationMethod: String, Codable, Sendable {
    case none
    case basic = "client_secret_basic"
    case post = "client_secret_post"
}

/// The provider, the client and the request of a sign-in, as a person or an app chooses them.
package struct SignInSettings: Sendable, Equatable {
    /// The provider's issuer identifier, an address.
    package var issuer: String
    /// The name that the provider gave the client.
    package var clientID: String
    /// `nil` for a public client.
    package var clientSecret: String?
    package var scopes: [String] = []
    /// The address that the browser returns to; `nil` for the usual one of the issuer.
    package var redirect: RedirectAddress?
    /// The loopback port that the browser returns to where ``redirect`` names none; 0 for any.
    package var redirectPort = 0
    /// The file of certificates that are trusted besides the system's, an absolute path.
    package var certificateFile: String?
    /// The provider's addresses; `nil` to fetch its metadata.
    package var endpoints: ProviderEndpoints?
    /// The origins, besides the issuer's, that the user may be sent to.
    package var allowedOrigins: [String] = []
    /// The other clients that an ID token may also be for.
    package var trustedAudiences: [String] = []
    /// The provider's own parameters of an authorization or device request.
    package var parameters: [String: String] = [:]
    /// The services that the tokens are for (RFC 8707).
    package var resources: [String] = []
    /// Whether the user signs in on another device (RFC 8628).
    package var isDevice = false
    /// Whether a session that the new one replaces is left as it is at the provider.
    package var keepsPrevious = false

    package init(issuer: String, clientID: String) {
        self.issuer = issuer
        self.clientID = clientID
    }

    /// Whether `name` can be that of a parameter of ``parameters``: visible ASCII, and not a name that the
    /// client sets itself.
    package static func isParameter(_ name: String) -> Bool {
        (1...100).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7e).contains($0) }
            && !reservedParameters.contains(
                // Some servers ignore the case of a name, or read these characters as underscores.
                String(name.lowercased().map { ". [".contains($0) ? "_" : $0 }))
    }

    /// Whether `text` can be one of ``resources``: an absolute URI without a fragment (RFC 8707 section 2).
    package static func isResource(_ text: String) -> Bool {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text.utf8.count <= 2_048 else {
            return false
        }
        return text.utf8[..<colon].first.map { (0x61...0x7a).contains($0 | 0x20) } ?? false
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "#") }
    }

    private static let reservedParameters: Set<String> = [
        "assertion", "client_assertion", "client_assertion_type", "client_id", "client_secret", "code",
        "code_challenge", "code_challenge_method", "code_verifier", "device_code", "grant_type", "nonce",
        "password", "redirect_uri", "refresh_token", "request", "request_uri", "resource", "response_mode",
        "response_type", "scope", "state", "username",
    ]
}

/// The settings of a sign-in and the provider's metadata, stored under a name so that they are given once.
package struct Profile: Codable, Sendable, Equatable {
    /// The version that has all of these members.
    package static let currentVersion = 2

    package var version = Profile.currentVersion
    /// The provider's issuer identifier, an address.
    package var issuer: String
    /// The provider's metadata as JSON (RFC 8414).
    package var metadata: String
    package var clientID: String
    package var authentication: ClientAuthenticationMethod
    package var clientSecret: String?
    package var scopes: [String]
    package var redirectPort: Int
    /// The address that the browser returns to, without a port; absent for the usual one.
    package var redirectAddress: String?
    /// Whether the default redirect path contains the issuer. Absent in version 1, which had only `/callback`.
    package var hasIssuerPath: Bool?
    /// The file of certificates that are trusted besides the system's; absent for none.
    package var certificateFile: String?
    /// The addresses of a provider without metadata, absent for others.
    package var endpoints: ProviderEndpoints?
    /// The origins, besides the issuer's, that the user may be sent to; absent for none.
    package var allowedOrigins: [String]?
    /// The other clients that an ID token may also be for; absent for none.
    package var trustedAudiences: [String]?
    /// The provider's own parameters; absent for none.
    package var parameters: [String: String]?
    /// The services that the tokens are for; absent for none.
    package var resources: [String]?
    /// Whether the user signs in on another device; absent in profiles of versions that did not store it.
    package var device: Bool?
    /// Whether a session that a new one replaces is left as it is at the provider; absent for no.
    package var keepsPrevious: Bool?

    /// Creates the profile of a sign-in with `settings`, with the metadata that the provider gave.
    package init(
        _ settings: SignInSettings, metadata: String, authentication: ClientAuthenticationMethod
    ) {
        issuer = settings.issuer
        self.metadata = metadata
        clientID = settings.clientID
        self.authentication = authentication
        clientSecret = settings.clientSecret
        scopes = settings.scopes
        redirectPort = settings.redirect.map(\.port) ?? settings.redirectPort
        redirectAddress = settings.redirect?.text(at: nil)
        hasIssuerPath = true
        certificateFile = settings.certificateFile
        endpoints = settings.endpoints
        allowedOrigins = settings.allowedOrigins.isEmpty ? nil : settings.allowedOrigins
        trustedAudiences = settings.trustedAudiences.isEmpty ? nil : settings.trustedAudiences
        parameters = settings.parameters.isEmpty ? nil : settings.parameters
        resources = settings.resources.isEmpty ? nil : settings.resources
        device = settings.isDevice
        keepsPrevious = settings.keepsPrevious ? true : nil
    }

    /// The provider and client that issued a session's tokens and may receive them.
    package var source: TokenSource { TokenSource(issuer: issuer, clientID: clientID) }

    /// Whether the provider accepts revocations.
    package var offersRevocation: Bool { Self.metadata(metadata)?.revocationEndpoint != nil }

    /// The address that the browser returns to; `nil` for the usual one of the issuer. It is not stored,
    /// because it depends on what the provider's metadata says at the time.
    package var redirect: RedirectAddress? {
        guard redirectAddress != nil || hasIssuerPath == nil else { return nil }
        var redirect = redirectAddress.flatMap { RedirectAddress($0) } ?? .former
        redirect.port = redirectPort
        return redirect
    }

    private static func metadata(_ document: String) -> Metadata? {
        try? Secret(utf8: document).decode(Metadata.self)
    }

    /// The parts of the provider's metadata that a program without the OAuth code needs.
    private struct Metadata: Decodable {
        let revocationEndpoint: String?
        private enum CodingKeys: String, CodingKey { case revocationEndpoint = "revocation_endpoint" }
    }
}

/// Printing a profile or settings shows no secret.
extension SignInSettings: RedactedStringConvertible {}
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
