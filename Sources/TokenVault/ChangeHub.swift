internal import Synchronization
internal import TokenVaultPlatform

/// Hands a storage's changes to its readers. For who writes a backend: one hub for each store, told of
/// every commit.
public final class ChangeHub: Sendable {
    private struct Reader {
        let service: TokenKey
        weak var subscription: TokenChanges.Subscription?
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var readersSoFar: UInt64 = 0
        /// How often there were readers after there had been none.
        var observations: UInt64 = 0
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let process = ProcessFacts.identifier

    /// A hub without readers.
    public init() {}

    deinit { end() }

    /// A new reader of the changes of `service`. After ``end()`` its sequence is at its end.
    public func subscribe(service: String) -> TokenChanges { subscribe(service: service, whenGone: {}) }

    /// A new reader of the changes of `service`. `whenGone` is called once it is one no more, perhaps within
    /// ``publish(service:_:)``.
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
        // In a forked child a thread that it does not have may hold the lock.
        guard process == ProcessFacts.identifier else { return }
        state.withLock { $0.readers[number] = nil }
    }

    /// Whether anyone listens.
    public var isObserved: Bool { observation != nil }

    /// Which of the times is this that anyone listens; `nil` when nobody does.
    var observation: UInt64? { state.withLock { $0.readers.isEmpty ? nil : $0.observations } }

    /// Tells the readers of `service` what happened to the event's key. Call it in the order of
    /// generations: readers trust that the last event of a key is the latest. Publishing
    /// ``TokenEvent/overflowed`` makes every reader list anew.
    public func publish(service: String, _ event: TokenEvent) {
        let service = TokenKey(service)
        publish(event) { $0 == service }
    }

    /// Makes the readers of every service list anew.
    func overflow() { publish(.overflowed) { _ in true } }

    private func publish(_ event: TokenEvent, to isWanted: (TokenKey) -> Bool) {
        let subscriptions = state.withLock { state in
            state.readers.values.compactMap { isWanted($0.service) ? $0.subscription : nil }
        }
        for subscription in subscriptions { subscription.publish(event) }
    }

    /// Ends every reader's sequence, for good.
    public func end() {
        let subscriptions = state.withLock { state in
            defer { state.readers = [:] }
            state.hasEnded = true
            return state.readers.values.compactMap(\.subscription)
        }
        for subscription in subscriptions { subscription.end() }
    }
}
