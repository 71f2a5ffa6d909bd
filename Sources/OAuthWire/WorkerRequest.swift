/// What `vaultctl` asks of `vaultctl-oauth`: one line of JSON on its standard input.
package struct WorkerRequest: Codable, Sendable, Equatable {
    /// What is to be done.
    package enum Operation: String, Codable, Sendable {
        /// Sign a person in with a browser on this machine.
        case browser
        /// Sign a person in with another device.
        case device
        /// Send the refresh token for new tokens.
        case refresh
        /// Tell the provider that the tokens are over.
        case revoke
    }

    /// How the client shows that it is itself, by the name that a provider's metadata has for it (RFC 7591 section 2).
    package enum Authentication: String, Codable, Sendable {
        case none
        case basic = "client_secret_basic"
        case post = "client_secret_post"
    }

    /// The version of these messages.
    package static let currentVersion = 1
    /// The longest line of either side, in bytes: three tokens of the longest kind and the metadata fit in.
    package static let longestLine = 1 << 20

    package var version = WorkerRequest.currentVersion
    package var operation: Operation
    /// The provider's name, an address.
    package var issuer: String
    /// The provider's metadata, as the worker wrote it after a sign-in; `nil` to ask the provider for it.
    package var metadata: String?
    package var clientID: String
    /// `nil` for the way that the metadata offers to a client that has, or has not, a secret.
    package var authentication: Authentication?
    package var clientSecret: String?
    package var scopes: [String] = []
    /// The port of the loopback that the browser comes back to; 0 for any.
    package var redirectPort = 0
    /// After how many seconds the worker gives up, a waiting for a person included.
    package var seconds: Double
    /// The tokens to send.
    package var accessToken: String?
    package var refreshToken: String?
    /// The ID token of the session: a new one has to be of the same person.
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
