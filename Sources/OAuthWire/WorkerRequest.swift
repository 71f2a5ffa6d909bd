package import TokenVault
package import TokenVaultAuth

/// A request of `vaultctl` to `vaultctl-oauth`: one line of JSON on its standard input. During a sign-in, each further
/// line is an address that the user pasted. The end of the input cancels the request.
package struct WorkerRequest: Codable, Sendable, Equatable {
    /// The operation to carry out.
    package enum Operation: Codable, Sendable, Equatable {
        /// Signs a user or the client in.
        case signIn(SignInSettings)
        /// Requests new tokens for a session of the profile.
        case refresh(Refresh, Profile)
        /// Revokes the tokens at the profile's provider.
        case revoke(TokenInfo, Profile)
        /// Exchanges an access token of a session of the profile.
        case exchange(TokenExchange, Profile)
        /// Signs a proof. No request is sent.
        case prove(ProofRequest)

        /// The kind of an operation.
        package enum Kind: Sendable { case signIn, refresh, revoke, exchange, prove }

        package var kind: Kind {
            switch self {
            case .signIn: .signIn
            case .refresh: .refresh
            case .revoke: .revoke
            case .exchange: .exchange
            case .prove: .prove
            }
        }
    }

    /// The parts of a `RefreshRequest`.
    package struct Refresh: Codable, Sendable, Equatable {
        let refreshToken: String
        let scope: String?
        /// The ID token of the session: a new ID token has to be for the same user.
        let idToken: String?
        /// The subject of the session's user: a new ID token has to be for the same subject.
        let subject: String?
        /// The private key that the session's tokens are bound to, in PEM.
        let dpopKey: String?
        let isRetry: Bool

        package init(_ request: RefreshRequest) {
            refreshToken = request.refreshToken
            scope = request.scope
            idToken = request.idToken
            subject = request.subject
            dpopKey = request.dpopKey?.unprotectedText()
            isRetry = request.isRetryOfUnknownOutcome
        }

        package var request: RefreshRequest {
            RefreshRequest(
                forwarding: refreshToken, scope: scope, idToken: idToken, subject: subject,
                dpopKey: dpopKey.map { Secret(utf8: $0) }, isRetryOfUnknownOutcome: isRetry)
        }
    }

    /// The version of these messages.
    package static let currentVersion = 4
    /// The longest line in either direction, in bytes. Three tokens of the longest kind and the metadata fit
    /// into it.
    package static let longestLine = 1 << 20

    private var version = WorkerRequest.currentVersion
    package let operation: Operation
    /// The way to the provider; `nil` for the direct one.
    package let network: NetworkSettings?
    /// The worker's time limit in seconds, including a wait for the user.
    package let seconds: Double
    /// Whether the worker also sends the provider's error texts.
    package let wantsErrorTexts: Bool

    /// Creates a request of a caller that waits for `limit`.
    package init(
        _ operation: Operation, network: NetworkSettings? = nil, wantsErrorTexts: Bool = false,
        within limit: Duration
    ) {
        self.operation = operation
        self.network = network
        self.wantsErrorTexts = wantsErrorTexts
        seconds = Self.seconds(within: limit)
    }

    /// Returns the version of the request in `line`; `nil` when `line` is not a request.
    package static func version(of line: Secret) -> Int? {
        struct Head: Decodable { let version: Int }
        return (try? line.decode(Head.self))?.version
    }

    /// Returns the worker's time limit in seconds when its caller waits for `limit`. It is a little shorter, so
    /// that the worker's answer still arrives.
    package static func seconds(within limit: Duration) -> Double {
        max(limit.inSeconds * 0.9, limit.inSeconds - 1)
    }
}

extension WorkerRequest: RedactedStringConvertible {}
