import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth

/// The settings of a sign-in that `login` stores under a name, so that the options are given once.
struct LoginProfile: Codable, Equatable {
    static let currentVersion = 1

    var version = LoginProfile.currentVersion
    /// The provider's issuer identifier, an address.
    var issuer: String
    /// The provider's metadata, as `vaultctl-oauth` wrote it.
    var metadata: String
    var clientID: String
    var authentication: WorkerRequest.Authentication
    var clientSecret: String?
    var scopes: [String]
    var redirectPort: Int
    /// Whether the user signs in on another device; absent in profiles of versions that did not store it.
    var device: Bool?

    /// The provider and client that issued a session's tokens and may receive them.
    var source: TokenSource { TokenSource(issuer: issuer, clientID: clientID) }

    /// Whether the provider accepts revocations.
    var offersRevocation: Bool {
        (try? Secret(utf8: metadata).decode(Endpoints.self))?.revocationEndpoint != nil
    }

    private struct Endpoints: Decodable {
        let revocationEndpoint: String?
        private enum CodingKeys: String, CodingKey { case revocationEndpoint = "revocation_endpoint" }
    }

    /// Returns a request to the provider as this client.
    func request(_ operation: WorkerRequest.Operation, seconds: Double) -> WorkerRequest {
        var request = WorkerRequest(
            operation: operation, issuer: issuer, clientID: clientID, seconds: seconds)
        request.metadata = metadata
        request.authentication = authentication
        request.clientSecret = clientSecret
        return request
    }
}

/// A stored profile.
struct StoredProfile {
    /// The decoded profile; `nil` when a newer program stored it.
    var content: LoginProfile?
    /// The stored bytes of the profile.
    var secret: Secret
    /// The policy; `nil` when a session without the root key chose it.
    var policy: AccessPolicy?
    var generation: Generation

    /// The decoded profile. Throws `unavailable` when a newer program stored it.
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
