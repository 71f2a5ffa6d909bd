internal import Synchronization
internal import TokenVaultPlatform

/// Hands a storage's changes to its readers. A backend has one hub for each store and publishes every commit
/// to it.
public final class ChangeHub: Sendable {
    private struct Reader {
        let service: TokenKey
        weak var subscription: TokenChanges.Subscription?
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var readersSoFar: UInt64 = 0
        /// The number of times that a reader subscribed while no other reader was subscribed.
        var observations: UInt64 = 0
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let process = ProcessFacts.identifier

    /// Creates a hub without readers.
    public init() {}

    deinit { end() }

    /// Adds a reader of the changes of `service`. After ``end()`` the returned sequence is already at its
    /// end.
    public func subscribe(service: String) -> TokenChanges { subscribe(service: service, whenGone: {}) }

    /// Adds a reader of the changes of `service`. `whenGone` is called when the reader is gone, perhaps
    /// within ``publish(service:_:)``.
    package func subscribe(service: String, whenGone: @escaping @Sendable () -> Void) -> TokenChanges {
        let number = state.withLock { state -> UInt64? in
            if state.hasEnded { return nil }
            if state.readers.isEmpty { state.observations += 1 }
            state.readersSoFar += 1
            state.readers[state.readersSoFar] = Reader(service: TokenKey(service))
            return state.readersSoFar
        }
        guard let number else {
            let subscription = TokenChanges.Subscription()
            subscription.end()
            return TokenChanges(subscription)
        }
        let subscription = TokenChanges.Subscription { [weak self] in
            self?.remove(number)
            whenGone()
        }
        let hasEnded = state.withLock { state in
            state.readers[number]?.subscription = subscription
            return state.hasEnded
        }
        if hasEnded { subscription.end() }
        return TokenChanges(subscription)
    }

    private func remove(_ number: UInt64) {
        // In a forked child the lock may be held by a thread that exists only in the parent.
        guard process == ProcessFacts.identifier else { return }
        state.withLock { $0.readers[number] = nil }
    }

    /// Whether any reader is subscribed.
    public var isObserved: Bool { observation != nil }

    /// The number of the current period with readers; `nil` while there are none.
    package var observation: UInt64? { state.withLock { $0.readers.isEmpty ? nil : $0.observations } }

    /// Reports a change of the event's key to the readers of `service`. Call this in the order of
    /// generations: readers take the last event of a key for the latest. ``TokenEvent/overflowed`` makes
    /// every reader of the service list again.
    public func publish(service: String, _ event: TokenEvent) {
        let service = TokenKey(service)
        publish(event) { $0 == service }
    }

    /// Makes the readers of every service list again.
    package func overflow() { publish(.overflowed) { _ in true } }

    private func publish(_ event: TokenEvent, to isWanted: (TokenKey) -> Bool) {
        let subscriptions = state.withLock { state in
            state.readers.values.compactMap { isWanted($0.service) ? $0.subscription : nil }
        }
        for subscription in subscriptions { subscription.publish(event) }
    }

    /// Ends every reader's sequence permanently.
    public func end() {
        let subscriptions = state.withLock { state in
            defer { state.readers = [:] }
            state.hasEnded = true
            return state.readers.values.compactMap(\.subscription)
        }
        for subscription in subscriptions { subscription.end() }
    }
}
