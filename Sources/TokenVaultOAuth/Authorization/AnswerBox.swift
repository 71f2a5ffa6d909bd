#if OAuth
internal import Synchronization
internal import TokenVault

/// The single answer that a listener waits for.
final class AnswerBox: Sendable {
    typealias Outcome = Result<AuthorizationAnswer, OAuthError>

    /// The listener's reply to a browser.
    enum Reply: Sendable {
        case signedIn, notSignedIn, wrongRequest, notFound
    }

    private struct State {
        var hosts: [String] = []
        var outcome: Outcome?
        var waiter: CheckedContinuation<Outcome, Never>?
    }

    let state = RandomText.make()
    private let provider: ProviderMetadata
    private let path: String
    private let inside = Mutex(State())

    init(provider: ProviderMetadata, path: String) {
        self.provider = provider
        self.path = path
    }

    /// Sets the listener's address. A browser leaves out the default port.
    func listens(on port: Int) {
        inside.withLock { $0.hosts = ["127.0.0.1:\(port)"] + (port == 80 ? ["127.0.0.1"] : []) }
    }

    /// Returns the reply to a request, and keeps its answer if it has one.
    func take(isGet: Bool, target: String, host: String?) -> Reply {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        // The host check rejects pages that lead here under a name of their own.
        guard isGet, parts[0].utf8.elementsEqual(path.utf8), let host,
            inside.withLock({ $0.hosts.contains(host) && $0.outcome == nil })
        else { return .notFound }
        let outcome: Outcome
        do throws(OAuthError) {
            outcome = .success(
                try AuthorizationAnswer(
                    query: parts.count == 2 ? String(parts[1]) : "", expecting: state, from: provider))
        } catch {
            // Only a request with the right state can end the wait.
            switch error {
            case .wrongIssuer, .malformedResponse("the code"): outcome = .failure(error)
            default: return .wrongRequest
            }
        }
        guard settle(outcome) else { return .notFound }
        if case .success(.granted) = outcome { return .signedIn }
        return .notSignedIn
    }

    /// Keeps `outcome`; returns whether it is the first.
    @discardableResult
    func settle(_ outcome: Outcome) -> Bool {
        let (isFirst, waiter) = inside.withLock { state -> (Bool, CheckedContinuation<Outcome, Never>?) in
            guard state.outcome == nil else { return (false, nil) }
            state.outcome = outcome
            defer { state.waiter = nil }
            return (true, state.waiter)
        }
        waiter?.resume(returning: outcome)
        return isFirst
    }

    /// Returns the outcome once there is one. Only one task waits.
    func value() async -> Outcome {
        await withCheckedContinuation { continuation in
            let outcome = inside.withLock { state -> Outcome? in
                if state.outcome == nil { state.waiter = continuation }
                return state.outcome
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }
}
#endif
