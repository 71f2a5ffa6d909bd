#if OAuth
import Foundation
import Synchronization
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// A clock that goes when a test wants it to, and how long was slept on it.
final class TestClock: Sendable {
    private let inside = Mutex((now: Date(timeIntervalSince1970: 1_800_000_000), slept: [Double]()))

    var now: Date { inside.withLock { $0.now } }
    var slept: [Double] { inside.withLock { $0.slept } }

    func advance(_ seconds: Double) { inside.withLock { $0.now.addTimeInterval(seconds) } }

    @Sendable func read() -> Date { now }

    @Sendable func sleep(_ duration: Duration) async throws {
        try Task.checkCancellation()
        inside.withLock {
            $0.now.addTimeInterval(duration.inSeconds)
            $0.slept.append(duration.inSeconds)
        }
    }
}

/// Counts from 1, on any thread.
final class Counter: Sendable {
    private let count = Mutex(0)

    /// The last number.
    var value: Int { count.withLock { $0 } }

    /// Returns the next number.
    @discardableResult
    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}

/// What a call throws; `nil` when it does not.
func failure<Value>(of body: () async throws(OAuthError) -> Value) async -> OAuthError? {
    do throws(OAuthError) {
        _ = try await body()
        return nil
    } catch {
        return error
    }
}

func metadata(
    _ origin: String, jwksURI: String? = nil, methods: [String]? = nil, iss: Bool = false,
    algorithms: [String]? = nil, revokes: Bool = true
) throws -> ProviderMetadata {
    try ProviderMetadata(
        issuer: origin, authorizationEndpoint: "\(origin)/authorize", tokenEndpoint: "\(origin)/token",
        deviceAuthorizationEndpoint: "\(origin)/device",
        revocationEndpoint: revokes ? "\(origin)/revoke" : nil,
        jwksURI: jwksURI, codeChallengeMethodsSupported: methods,
        idTokenSigningAlgValuesSupported: algorithms, authorizationResponseIssParameterSupported: iss)
}

func client(
    _ server: ScriptedServer, authentication: ClientAuthentication = .none, clock: TestClock = TestClock(),
    revokes: Bool = true
) throws -> OAuthClient {
    var configuration = OAuthTransport.Configuration()
    // The clock keeps the server alive as long as the client exists.
    configuration.clock = { withExtendedLifetime(server) { clock.now } }
    configuration.requestTimeout = .seconds(3_600)
    var client = try OAuthClient(
        provider: try metadata(server.origin, jwksURI: "\(server.origin)/keys", revokes: revokes),
        clientID: "fake-client", authentication: authentication,
        transport: OAuthTransport(configuration: configuration),
        clock: clock.read, sleep: clock.sleep)
    // Long limits, so that a busy machine does not matter.
    client.idTokenPatience = .seconds(3_600)
    client.signInPatience = .seconds(3_600)
    client.revocationPatience = .seconds(3_600)
    return client
}

let tokenAnswer =
    #"{"access_token":"fake-access","token_type":"bearer","expires_in":60,"refresh_token":"fake-refresh"}"#

func refreshRequest(_ client: OAuthClient, idToken: String? = nil, subject: String? = nil) async -> Result<
    TokenRefreshResponse, RefreshFailure
> {
    let request = RefreshRequest(
        account: "a", refreshToken: "fake-old", scope: nil, idToken: idToken, subject: subject,
        isRetryOfUnknownOutcome: false)
    do {
        return .success(try await client.refreshRequestProvider(request))
    } catch {
        return .failure(error as? RefreshFailure ?? RefreshFailure(.interrupted))
    }
}

extension Result {
    var failure: Failure? {
        if case .failure(let failure) = self { return failure }
        return nil
    }
}
#endif
