internal import Synchronization

/// One thing that changed.
public enum TokenEvent: Hashable, Sendable {
    /// The key was stored, updated, or came into being by a rename; it has this generation now.
    case stored(TokenKey, Generation)
    /// The key was deleted, or went away by a rename, by the commit of this generation.
    case deleted(TokenKey, Generation)
    /// More keys changed than are kept for a slow reader: list anew. Later events follow.
    case overflowed
}

/// What changes in a service, for one reader.
///
/// The reader sees the latest generation of every changed key at least once and never an older one
/// after a newer one; changes of a key that it was too slow to see are merged into the latest. At most
/// 1,024 keys wait; beyond that they are dropped and ``TokenEvent/overflowed`` says so. The sequence
/// ends when the storage is closed or the reading task is cancelled. Iterate it once.
public struct TokenChanges: AsyncSequence, Sendable {
    /// The element of the sequence.
    public typealias Element = TokenEvent
    /// The sequence ends; it never throws.
    public typealias Failure = Never

    private let subscription: Subscription

    init(_ subscription: Subscription) { self.subscription = subscription }

    /// An iterator. All iterators of one sequence share its events.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// The next event; `nil` at the end.
        public mutating func next() async -> TokenEvent? { await subscription.next() }

        /// The next event; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TokenEvent? {
            await subscription.next()
        }
    }

    /// What waits for one reader.
    final class Subscription: Sendable {
        static let capacity = 1_024

        private struct State {
            var order: [TokenKey] = []
            var events: [TokenKey: TokenEvent] = [:]
            var overflowed = false
            var ended = false
            var reader: CheckedContinuation<TokenEvent?, Never>?

            mutating func take() -> TokenEvent? {
                if overflowed {
                    overflowed = false
                    return .overflowed
                }
                guard !order.isEmpty else { return nil }
                return events.removeValue(forKey: order.removeFirst())
            }
        }

        private let state = Mutex(State())

        func publish(_ key: TokenKey, _ event: TokenEvent) {
            let wake = state.withLock { state -> (CheckedContinuation<TokenEvent?, Never>, TokenEvent)? in
                guard !state.ended else { return nil }
                if state.events.updateValue(event, forKey: key) == nil { state.order.append(key) }
                if state.order.count > Self.capacity {
                    state.order = []
                    state.events = [:]
                    state.overflowed = true
                }
                guard let reader = state.reader, let next = state.take() else { return nil }
                state.reader = nil
                return (reader, next)
            }
            if let (reader, event) = wake { reader.resume(returning: event) }
        }

        func end() {
            let reader = state.withLock { state in
                state.ended = true
                defer { state.reader = nil }
                return state.reader
            }
            reader?.resume(returning: nil)
        }

        func next() async -> TokenEvent? {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    enum Answer { case now(TokenEvent?), later, replace(CheckedContinuation<TokenEvent?, Never>) }
                    let answer = state.withLock { state -> Answer in
                        if let event = state.take() { return .now(event) }
                        if state.ended || Task.isCancelled { return .now(nil) }
                        if let other = state.reader {
                            // Two tasks read one sequence: the earlier one ends rather than hangs.
                            state.reader = continuation
                            return .replace(other)
                        }
                        state.reader = continuation
                        return .later
                    }
                    switch answer {
                    case .now(let event): continuation.resume(returning: event)
                    case .replace(let other): other.resume(returning: nil)
                    case .later: break
                    }
                }
            } onCancel: {
                let reader = state.withLock { state in
                    defer { state.reader = nil }
                    return state.reader
                }
                reader?.resume(returning: nil)
            }
        }
    }
}

/// Hands a storage's changes to its readers.
package final class ChangeHub: Sendable {
    private struct Reader {
        let service: TokenKey
        weak var subscription: TokenChanges.Subscription?
    }

    private let readers = Mutex<[Reader]>([])

    package init() {}

    /// A new reader of the changes of `service`.
    package func subscribe(service: String) -> TokenChanges {
        let subscription = TokenChanges.Subscription()
        readers.withLock { readers in
            readers.removeAll { $0.subscription == nil }
            readers.append(Reader(service: TokenKey(service), subscription: subscription))
        }
        return TokenChanges(subscription)
    }

    /// Whether anyone listens.
    package var isObserved: Bool { readers.withLock { $0.contains { $0.subscription != nil } } }

    /// Tells the readers of `service`. Call it in the order of generations.
    package func publish(service: String, key: TokenKey, event: TokenEvent) {
        let service = TokenKey(service)
        let subscriptions = readers.withLock { readers in
            readers.compactMap { $0.service == service ? $0.subscription : nil }
        }
        for subscription in subscriptions { subscription.publish(key, event) }
    }

    /// Ends every reader's sequence.
    package func end() {
        let subscriptions = readers.withLock { readers in
            defer { readers = [] }
            return readers.compactMap(\.subscription)
        }
        for subscription in subscriptions { subscription.end() }
    }
}
