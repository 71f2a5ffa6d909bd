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

    /// The client's way to authenticate, by its name in a provider's metadata (RFC 7591 section 2).
    package enum Authentication: String, Codable, Sendable {
        case none
        case basic = "client_secret_basic"
        case post = "client_secret_post"
    }

    /// The version of these messages.
    package static let currentVersion = 1
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
    package var authentication: Authentication?
    package var clientSecret: String?
    package var scopes: [String] = []
    /// The loopback port that the browser returns to; 0 for any.
    package var redirectPort = 0
    /// The worker's time limit in seconds, including a wait for the user.
    package var seconds: Double
    /// The tokens to send.
    package var accessToken: String?
    package var refreshToken: String?
    /// The ID token of the session: a new ID token has to be for the same user.
    package var idToken: String?
    package var scope: String?
    package var isRetry = false

    package init(operation: Operation, issuer: String, clientID: String, seconds: Double) {
        self.operation = operation
        self.issuer = issuer
        self.clientID = clientID
        self.seconds = seconds
    }
}
