#if OAuth
internal import Synchronization
internal import TokenVault
internal import TokenVaultAuth

/// The single answer that a listener waits for.
final class AnswerBox: Sendable {
    typealias Outcome = Result<AuthorizationAnswer, OAuthError>

    /// The listener's reply to a browser.
    enum Reply: Sendable, Equatable {
        case signedIn, notSignedIn, wrongRequest, notFound
        /// The browser belongs to another user of the machine.
        case otherUser
        /// The browser continues at this address.
        case redirect(String)
    }

    private struct State {
        var hosts: [String] = []
        /// The target of the first page, and the address that it leads to.
        var start: (target: String, address: String)?
        var outcome: Outcome?
        var waiter: CheckedContinuation<Outcome, Never>?
    }

    let state = RandomText.make()
    private let provider: ProviderMetadata
    private let path: String
    private let inside = Mutex(State())

    init(provider: ProviderMetadata, path: String) {
        self.provider = provider
        self.path = path.isEmpty ? "/" : path
    }

    /// Sets the listener's address. A browser leaves out the default port.
    func listens(at host: RedirectAddress.Host, _ port: Int) {
        inside.withLock {
            $0.hosts = ["\(host.rawValue):\(port)"] + (port == 80 ? [host.rawValue] : [])
        }
    }

    /// Returns the target of a page that leads the browser to `address`. Its name cannot be guessed.
    func leads(to address: String) -> String {
        let target = "/start/\(RandomText.make().unprotectedText() ?? "")"
        inside.withLock { $0.start = (target, address) }
        return target
    }

    /// Whether `target` is the path of the answer.
    func isAnswer(_ target: String) -> Bool { Self.parts(target).path.utf8.elementsEqual(path.utf8) }

    private static func parts(_ target: String) -> (path: Substring, query: Substring) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        return (parts[0], parts.count == 2 ? parts[1] : "")
    }

    /// Returns the reply to a `GET` of `target`, or to a `POST` with the form `form`. Stores the answer that the
    /// request contains.
    func take(_ target: String, form: String? = nil, host: String?) -> Reply {
        if form == nil, let host, let address = start(target, host) { return .redirect(address) }
        // The host check rejects pages that lead here under a name of their own.
        guard isAnswer(target), let host,
            inside.withLock({ $0.hosts.contains(host) && $0.outcome == nil })
        else { return .notFound }
        return take(fields: form ?? String(Self.parts(target).query))
    }

    /// Stores the answer in `fields`, a query or a form, and returns the reply. Checks no host. A pasted answer
    /// without a code is not stored.
    func take(fields: String, isPasted: Bool = false) -> Reply {
        let outcome: Outcome
        do throws(OAuthError) {
            outcome = .success(
                try AuthorizationAnswer(query: fields, expecting: state, from: provider))
        } catch {
            // Only a request with the right state can end the wait.
            switch error {
            // A part of the address may have been copied.
            case .malformedResponse where isPasted: return .wrongRequest
            case .wrongIssuer, .malformedResponse("the code"): outcome = .failure(error)
            default: return .wrongRequest
            }
        }
        guard settle(outcome) else { return .notFound }
        if case .success(.granted) = outcome { return .signedIn }
        return .notSignedIn
    }

    private func start(_ target: String, _ host: String) -> String? {
        inside.withLock { state in
            guard let start = state.start, start.target.utf8.elementsEqual(target.utf8),
                state.hosts.contains(host), state.outcome == nil
            else { return nil }
            return start.address
        }
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
