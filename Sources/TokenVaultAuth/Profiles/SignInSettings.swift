internal import TokenVault

/// A way to get the tokens of a session.
package enum SignInFlow: String, Codable, Sendable {
    /// The user signs in with a browser on this machine (RFC 8252).
    case browser
    /// The user signs in on another device (RFC 8628).
    case device
    /// The client gets tokens for itself, without a user (RFC 6749 section 4.4).
    case clientCredentials = "client_credentials"
}

/// The provider, the client and the request of a sign-in, as a person or an app chooses them.
package struct SignInSettings: Sendable, Equatable {
    /// The provider's issuer identifier, an address.
    package var issuer: String
    /// The name that the provider gave the client.
    package var clientID: String
    /// The client's secret; `nil` without one.
    package var clientSecret: String?
    /// The client's key and chosen method; `nil` without both.
    package var clientIdentity: ClientIdentity?
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
    /// The provider's own parameters of an authorization or device request, or of the client's own token requests.
    package var parameters: [String: String] = [:]
    /// The services that the tokens are for (RFC 8707).
    package var resources: [String] = []
    /// The way to get the tokens.
    package var flow = SignInFlow.browser
    /// Whether a session that the new one replaces is left as it is at the provider.
    package var keepsPrevious = false
    /// Whether the tokens are bound to a new key (RFC 9449).
    package var usesDPoP = false

    package init(issuer: String, clientID: String) {
        self.issuer = issuer
        self.clientID = clientID
    }

    /// The provider and client that issue a session's tokens and may receive them.
    package var source: TokenSource { TokenSource(issuer: issuer, clientID: clientID) }

    /// Whether `name` can be that of a parameter of ``parameters``: visible ASCII, and not a name that the
    /// client sets itself.
    package static func isParameter(_ name: String) -> Bool {
        (1...100).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7e).contains($0) }
            && !reservedParameters.contains(
                // Some servers ignore the case of a name, or read these characters as underscores.
                String(name.lowercased().map { ". [".contains($0) ? "_" : $0 }))
    }

    /// Whether the parameter `name` can have `value`. `response_mode` can be `query` or `form_post`.
    package static func isValue(_ value: String, of name: String) -> Bool {
        name.lowercased() != "response_mode" || ["query", "form_post"].contains(value)
    }

    /// Whether `text` can be one of ``scopes`` (RFC 6749 section 3.3).
    package static func isScope(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
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
        "code_challenge", "code_challenge_method", "code_verifier", "device_code", "dpop_jkt", "grant_type",
        "nonce",
        "password", "redirect_uri", "refresh_token", "request", "request_uri", "resource", "response_type",
        "scope", "state", "username",
    ]
}

/// Encoded as an object with the names of the properties. Empty optional members are omitted.
extension SignInSettings: Codable {
    private enum CodingKeys: String, CodingKey {
        case issuer, clientID, clientSecret, clientIdentity, scopes, redirectAddress, redirectPort,
            certificateFile, endpoints,
            allowedOrigins, trustedAudiences, parameters, resources, flow, keepsPrevious, usesDPoP
        /// Whether ``flow`` is `device`, in profiles of versions 1 and 2.
        case device
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func list(_ key: CodingKeys) throws -> [String] {
            try values.decodeIfPresent([String].self, forKey: key) ?? []
        }
        self.init(
            issuer: try values.decode(String.self, forKey: .issuer),
            clientID: try values.decode(String.self, forKey: .clientID))
        clientSecret = try values.decodeIfPresent(String.self, forKey: .clientSecret)
        clientIdentity = try values.decodeIfPresent(ClientIdentity.self, forKey: .clientIdentity)
        scopes = try list(.scopes)
        let port = try values.decodeIfPresent(Int.self, forKey: .redirectPort) ?? 0
        if let text = try values.decodeIfPresent(String.self, forKey: .redirectAddress) {
            guard var address = RedirectAddress(text) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .redirectAddress, in: values, debugDescription: "not a redirect address")
            }
            address.port = port
            redirect = address
        } else {
            redirectPort = port
        }
        certificateFile = try values.decodeIfPresent(String.self, forKey: .certificateFile)
        endpoints = try values.decodeIfPresent(ProviderEndpoints.self, forKey: .endpoints)
        allowedOrigins = try list(.allowedOrigins)
        trustedAudiences = try list(.trustedAudiences)
        parameters = try values.decodeIfPresent([String: String].self, forKey: .parameters) ?? [:]
        resources = try list(.resources)
        let isDevice = try values.decodeIfPresent(Bool.self, forKey: .device) ?? false
        flow =
            try values.decodeIfPresent(SignInFlow.self, forKey: .flow) ?? (isDevice ? .device : .browser)
        keepsPrevious = try values.decodeIfPresent(Bool.self, forKey: .keepsPrevious) ?? false
        usesDPoP = try values.decodeIfPresent(Bool.self, forKey: .usesDPoP) ?? false
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(issuer, forKey: .issuer)
        try values.encode(clientID, forKey: .clientID)
        try values.encodeIfPresent(clientSecret, forKey: .clientSecret)
        try values.encodeIfPresent(clientIdentity, forKey: .clientIdentity)
        try values.encode(scopes, forKey: .scopes)
        // The port is stored separately from the address.
        try values.encode(redirect?.port ?? redirectPort, forKey: .redirectPort)
        try values.encodeIfPresent(redirect?.text(at: nil), forKey: .redirectAddress)
        try values.encodeIfPresent(certificateFile, forKey: .certificateFile)
        try values.encodeIfPresent(endpoints, forKey: .endpoints)
        for (list, key) in [
            (allowedOrigins, CodingKeys.allowedOrigins), (trustedAudiences, .trustedAudiences),
            (resources, .resources),
        ] where !list.isEmpty {
            try values.encode(list, forKey: key)
        }
        if !parameters.isEmpty { try values.encode(parameters, forKey: .parameters) }
        try values.encode(flow, forKey: .flow)
        if keepsPrevious { try values.encode(true, forKey: .keepsPrevious) }
        if usesDPoP { try values.encode(true, forKey: .usesDPoP) }
    }
}

/// Printing settings shows no secret.
extension SignInSettings: RedactedStringConvertible {}
