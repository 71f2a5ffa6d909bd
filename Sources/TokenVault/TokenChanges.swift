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

    /// Forgets the events that wait, and has ``TokenEvent/overflowed`` in their place: their names are not to be told any more.
    package func forget() { subscription.forget() }

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
}
