#if OAuth
import Glibc
import Synchronization
import TokenVault
import TokenVaultAuth
import TokenVaultOAuth

/// Where a worker ends without warning: at a step of its refresh, within one, or never.
final class Ending: Sendable {
    private let place: String
    private let wasAnswered = Mutex(false)
    private let manager = Mutex<TokenManager?>(nil)

    /// Ends at `place`, which is a ``RefreshStep`` or one of these words:
    /// - `writing`: when half of the new record is written.
    /// - `synchronizing`: before the new record is synchronized.
    /// - `pausing`: between two requests.
    /// - `trapping`: with the answer, by a trap.
    /// - `never`.
    init(_ place: String) { self.place = place }

    /// The manager of `account`, that ends there.
    func manager(
        _ client: OAuthClient, _ storage: FileTokenStorage, account: String,
        _ configuration: TokenManager.Configuration
    ) async throws -> TokenManager {
        var configuration = configuration
        let before = try await client.tokenManager(storage: storage, account: account).currentTokens()
        configuration.step = { [self] step in
            let now = self.manager.withLock { $0 }
            let published = try? await now?.currentTokens()
            say("\(step.rawValue) \(published == before ? "old" : "new")")
            if step == .answered { wasAnswered.withLock { $0 = true } }
            reach(step.rawValue)
            if step == .answered, place == "trapping" { trap(published) }
        }
        let sleep = configuration.sleep
        configuration.sleep = { [self] duration in
            reach("pausing")
            try await sleep(duration)
        }
        let manager = TokenManager(
            storage: storage, account: account, configuration: configuration,
            revokeRequestProvider: client.revokeRequestProvider
        ) { request in
            say("asks \(request.isRetryOfUnknownOutcome ? "again" : "first")")
            return try await client.refreshRequestProvider(request)
        }
        self.manager.withLock { $0 = manager }
        return manager
    }

    /// Ends the process if this is the place.
    func reach(_ place: String) {
        guard place == self.place else { return }
        kill(getpid(), SIGKILL)
        while true { pause() }
    }

    /// Whether what is written from now on is the new record, and this the place where that ends.
    func isReached(_ place: String) -> Bool { place == self.place && wasAnswered.withLock { $0 } }

    /// An index beyond an array, as a program's own mistake would be, with tokens at hand.
    private func trap(_ tokens: TokenInfo?) {
        let held = [tokens]
        say("\(held[Int(getpid()).signum()].debugDescription.count)")
    }
}

/// Says a line at once: nothing of it is lost with the process.
func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(1, bytes, bytes.count)
}
#endif
