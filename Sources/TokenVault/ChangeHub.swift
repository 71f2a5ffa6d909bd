internal import Synchronization

/// Hands a storage's changes to its readers. For who writes a backend: one hub for each store, told of
/// every commit.
public final class ChangeHub: Sendable {
    private struct Reader {
        let service: TokenKey
        weak var subscription: TokenChanges.Subscription?
    }

    private struct State {
        var readers: [Reader] = []
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// A hub without readers.
    public init() {}

    /// A new reader of the changes of `service`. After ``end()`` its sequence is at its end.
    public func subscribe(service: String) -> TokenChanges {
        let subscription = TokenChanges.Subscription()
        let hasEnded = state.withLock { state in
            if state.hasEnded { return true }
            state.readers.removeAll { $0.subscription == nil }
            state.readers.append(Reader(service: TokenKey(service), subscription: subscription))
            return false
        }
        if hasEnded { subscription.end() }
        return TokenChanges(subscription)
    }

    /// Whether anyone listens.
    public var isObserved: Bool {
        state.withLock { $0.readers.contains { $0.subscription != nil } }
    }

    /// Tells the readers of `service` what happened to the event's key. Call it in the order of
    /// generations: readers trust that the last event of a key is the latest. Publishing
    /// ``TokenEvent/overflowed`` makes every reader list anew.
    public func publish(service: String, _ event: TokenEvent) {
        let service = TokenKey(service)
        let subscriptions = state.withLock { state in
            state.readers.compactMap { $0.service == service ? $0.subscription : nil }
        }
        for subscription in subscriptions { subscription.publish(event) }
    }

    /// Ends every reader's sequence, for good.
    public func end() {
        let subscriptions = state.withLock { state in
            defer { state.readers = [] }
            state.hasEnded = true
            return state.readers.compactMap(\.subscription)
        }
        for subscription in subscriptions { subscription.end() }
    }
}
