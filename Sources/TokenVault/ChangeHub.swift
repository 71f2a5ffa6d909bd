internal import Synchronization

/// Hands a storage's changes to its readers.
package final class ChangeHub: Sendable {
    private struct Reader {
        let service: TokenKey
        weak var subscription: TokenChanges.Subscription?
    }

    private struct State {
        var readers: [Reader] = []
        var hasEnded = false
    }

    private let state = Mutex(State())

    package init() {}

    /// A new reader of the changes of `service`. After ``end()`` its sequence is at its end.
    package func subscribe(service: String) -> TokenChanges {
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
    package var isObserved: Bool {
        state.withLock { $0.readers.contains { $0.subscription != nil } }
    }

    /// Tells the readers of `service`. Call it in the order of generations.
    package func publish(service: String, key: TokenKey, event: TokenEvent) {
        let service = TokenKey(service)
        let subscriptions = state.withLock { state in
            state.readers.compactMap { $0.service == service ? $0.subscription : nil }
        }
        for subscription in subscriptions { subscription.publish(key, event) }
    }

    /// Ends every reader's sequence, for good.
    package func end() {
        let subscriptions = state.withLock { state in
            defer { state.readers = [] }
            state.hasEnded = true
            return state.readers.compactMap(\.subscription)
        }
        for subscription in subscriptions { subscription.end() }
    }
}
