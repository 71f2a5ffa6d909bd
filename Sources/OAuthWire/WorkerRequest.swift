package import TokenVaultAuth

/// A request of `vaultctl` to `vaultctl-oauth`: one line of JSON on its standard input.
package struct WorkerRequest: Codable, Sendable, Equatable {
    /// The operation to carry out.
    package enum Operation: String, Codable, Sendable {
        /// Signs a user in with a browser on this machine.
        case browser
        /// Signs a user in with another device.
        case device
        /// Refreshes the tokens with the refresh token.
        case refresh
        /// Revokes the tokens at the provider.
        case revoke
    }

    /// The version of these messages.
    package static let currentVersion = 2
    /// The longest line in either direction, in bytes. Three tokens of the longest kind and the metadata fit
    /// into it.
    package static let longestLine = 1 << 20

    package var version = WorkerRequest.currentVersion
    package var operation: Operation
    /// The provider's name, an address.
    package var issuer: String
    /// The provider's metadata, as the worker wrote it after a sign-in; `nil` to fetch it from the provider.
    package var metadata: String?
    package var clientID: String
    /// `nil` for the method in the metadata that fits a client with, or without, a secret.
    package var authentication: ClientAuthenticationMethod?
    package var clientSecret: String?
    package var scopes: [String] = []
    /// The loopback port that the browser returns to; 0 for any.
    package var redirectPort = 0
    /// The address that the browser returns to; `nil` for the usual one of the issuer.
    package var redirectAddress: String?
    /// The provider's addresses; `nil` to fetch its metadata.
    package var endpoints: ProviderEndpoints?
    /// The origins, besides the issuer's, that the user may be sent to.
    package var allowedOrigins: [String]?
    /// The other clients that an ID token may also be for.
    package var trustedAudiences: [String]?
    /// The provider's own parameters of a sign-in.
    package var parameters: [String: String]?
    /// The services that the tokens are for (RFC 8707).
    package var resources: [String]?
    /// The way to the provider; `nil` for the direct one.
    package var network: NetworkSettings?
    /// The file of certificates that are trusted besides the system's.
    package var certificateFile: String?
    /// The worker's time limit in seconds, including a wait for the user.
    package var seconds: Double
    /// The tokens to send.
    package var accessToken: String?
    package var refreshToken: String?
    /// The ID token of the session: a new ID token has to be for the same user.
    package var idToken: String?
    /// The subject of the session's user: a new ID token has to be for the same subject.
    package var subject: String?
    package var scope: String?
    package var isRetry = false

    package init(operation: Operation, issuer: String, clientID: String, seconds: Double) {
        self.operation = operation
        self.issuer = issuer
        self.clientID = clientID
        self.seconds = seconds
    }

    /// Creates the request of a sign-in.
    package init(_ settings: SignInSettings, within limit: Duration) {
        self.init(
            operation: settings.isDevice ? .device : .browser, issuer: settings.issuer,
            clientID: settings.clientID, seconds: Self.seconds(within: limit))
        clientSecret = settings.clientSecret
        scopes = settings.scopes
        redirectPort = settings.redirectPort
        redirectAddress = settings.redirect?.text
        certificateFile = settings.certificateFile
        endpoints = settings.endpoints
        allowedOrigins = settings.allowedOrigins
        trustedAudiences = settings.trustedAudiences
        parameters = settings.parameters
        resources = settings.resources
    }

    /// Creates a request of the client in `profile`.
    package init(_ operation: Operation, of profile: Profile, within limit: Duration) {
        self.init(
            operation: operation, issuer: profile.issuer, clientID: profile.clientID,
            seconds: Self.seconds(within: limit))
        metadata = profile.metadata
        authentication = profile.authentication
        clientSecret = profile.clientSecret
        resources = profile.resources
        trustedAudiences = profile.trustedAudiences
        certificateFile = profile.certificateFile
    }

    /// The settings of a sign-in.
    package var settings: SignInSettings {
        var settings = SignInSettings(issuer: issuer, clientID: clientID)
        settings.clientSecret = clientSecret
        settings.scopes = scopes
        settings.redirectPort = redirectPort
        settings.redirect = redirectAddress.flatMap { RedirectAddress($0) }
        settings.certificateFile = certificateFile
        settings.endpoints = endpoints
        settings.allowedOrigins = allowedOrigins ?? []
        settings.trustedAudiences = trustedAudiences ?? []
        settings.parameters = parameters ?? [:]
        settings.resources = resources ?? []
        settings.isDevice = operation == .device
        return settings
    }

    /// The profile that sends the request.
    package var profile: Profile {
        Profile(settings, metadata: metadata ?? "", authentication: authentication ?? .none)
    }

    /// Returns the worker's time limit in seconds when its caller waits for `limit`. It is a little shorter, so
    /// that the worker's answer still arrives.
    package static func seconds(within limit: Duration) -> Double {
        max(limit.inSeconds * 0.9, limit.inSeconds - 1)
    }
}
