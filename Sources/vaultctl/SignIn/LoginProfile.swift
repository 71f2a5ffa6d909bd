import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth

/// Where a person signs in, and as which client: what `login` keeps of it, so that its options are given once.
struct LoginProfile: Codable, Equatable {
    static let currentVersion = 1

    var version = LoginProfile.currentVersion
    /// The provider's name, an address.
    var issuer: String
    /// What the provider says of itself, as `vaultctl-oauth` wrote it.
    var metadata: String
    var clientID: String
    var authentication: WorkerRequest.Authentication
    var clientSecret: String?
    var scopes: [String]
    var redirectPort: Int
    /// Whether the person signs in on another device; absent in profiles that were made before that was kept.
    var device: Bool?

    /// Whom a session's tokens are from, and may go to.
    var source: TokenSource { TokenSource(issuer: issuer, clientID: clientID) }

    /// Whether the provider can be told that a session is over.
    var offersRevocation: Bool {
        (try? Secret(utf8: metadata).decode(Endpoints.self))?.revocationEndpoint != nil
    }

    private struct Endpoints: Decodable {
        let revocationEndpoint: String?
        private enum CodingKeys: String, CodingKey { case revocationEndpoint = "revocation_endpoint" }
    }

    /// What is asked of the provider as this client.
    func request(_ operation: WorkerRequest.Operation, seconds: Double) -> WorkerRequest {
        var request = WorkerRequest(
            operation: operation, issuer: issuer, clientID: clientID, seconds: seconds)
        request.metadata = metadata
        request.authentication = authentication
        request.clientSecret = clientSecret
        return request
    }
}

/// A profile as it is stored.
struct StoredProfile {
    /// What it says; `nil` when a newer program stored it.
    var content: LoginProfile?
    /// The bytes that say it.
    var secret: Secret
    /// `nil` where a session without the root key chose it.
    var policy: AccessPolicy?
    var generation: Generation

    /// What it says. Throws `unavailable` when a newer program stored it.
    var profile: LoginProfile {
        get throws(CommandFailure) {
            guard let content else {
                throw CommandFailure(
                    .unavailable, "what is stored is no profile that this program knows",
                    "use the newer program, or make it anew with --issuer and --client-id")
            }
            return content
        }
    }
}
