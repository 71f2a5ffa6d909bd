/// One change in a service.
public enum TokenEvent: Hashable, Sendable {
    /// The key was stored, updated, or created by a rename, and now has this generation.
    case stored(TokenKey, Generation)
    /// The key was deleted, or removed by a rename, in the commit of this generation.
    case deleted(TokenKey, Generation)
    /// More keys changed than are queued for a slow reader: list again. Later events follow.
    case overflowed
}

/// The changes in a service, for one reader.
///
/// The reader sees the latest generation of every changed key at least once, and never an older one after a
/// newer one. Changes of a key that a slow reader missed are merged into the latest. At most 1,024 keys wait.
/// Beyond that they are dropped, and the reader gets ``TokenEvent/overflowed``. The sequence ends when the
/// storage is closed or the reading task is cancelled. Iterate it once.
public struct TokenChanges: AsyncSequence, Sendable {
    /// The element of the sequence.
    public typealias Element = TokenEvent
    /// The failure type: the sequence never throws.
    public typealias Failure = Never

    private let subscription: Subscription

    init(_ subscription: Subscription) { self.subscription = subscription }

    /// Replaces the waiting events with ``TokenEvent/overflowed``, because their names may no longer be
    /// shown.
    package func forget() { subscription.forget() }

    /// Returns an iterator. All iterators of one sequence share its events.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }

    /// An iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// Returns the next event, or `nil` at the end.
        public mutating func next() async -> TokenEvent? { await subscription.next() }

        /// Returns the next event, or `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TokenEvent? {
            await subscription.next()
        }
    }
}
