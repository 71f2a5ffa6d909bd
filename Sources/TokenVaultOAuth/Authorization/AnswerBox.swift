#if OAuth
internal import Synchronization
internal import TokenVault

/// The one answer that a listener waits for.
final class AnswerBox: Sendable {
    typealias Outcome = Result<AuthorizationAnswer, OAuthError>

    /// What the listener says to a browser.
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

    /// Says where the listener is. A browser leaves out the port that every address has unless it names one.
    func listens(on port: Int) {
        inside.withLock { $0.hosts = ["127.0.0.1:\(port)"] + (port == 80 ? ["127.0.0.1"] : []) }
    }

    /// What to say to a request, which may have been the answer.
    func take(isGet: Bool, target: String, host: String?) -> Reply {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        // The host keeps out pages that have a name of theirs lead here.
        guard isGet, parts[0].utf8.elementsEqual(path.utf8), let host,
            inside.withLock({ $0.hosts.contains(host) && $0.outcome == nil })
        else { return .notFound }
        let outcome: Outcome
        do throws(OAuthError) {
            outcome = .success(
                try AuthorizationAnswer(
                    query: parts.count == 2 ? String(parts[1]) : "", expecting: state, from: provider))
        } catch {
            // Only who knows the state can end the waiting.
            switch error {
            case .wrongIssuer, .malformedResponse("the code"): outcome = .failure(error)
            default: return .wrongRequest
            }
        }
        guard settle(outcome) else { return .notFound }
        if case .success(.granted) = outcome { return .signedIn }
        return .notSignedIn
    }

    /// Whether `outcome` is the first.
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

    /// The outcome, once there is one. One task waits.
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
