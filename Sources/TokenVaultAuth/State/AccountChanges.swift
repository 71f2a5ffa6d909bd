/// What an account's readers get: the value of now, as soon as it is known, then every other one.
///
/// Every reader has a sequence of its own. One that is more than 1,024 changes behind misses the oldest. The sequence ends
/// when its task is cancelled or the manager is gone.
public struct AccountChanges<Element: Sendable>: AsyncSequence, Sendable {
    /// The sequence never throws.
    public typealias Failure = Never

    let stream: AsyncStream<Element>

    /// An iterator. All iterators of one sequence share its elements.
    public func makeAsyncIterator() -> Iterator { Iterator(iterator: stream.makeAsyncIterator()) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        var iterator: AsyncStream<Element>.Iterator

        /// The next value; `nil` at the end.
        public mutating func next() async -> Element? { await next(isolation: #isolation) }

        /// The next value; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            await iterator.next(isolation: actor)
        }
    }
}

/// The tokens of an account: those of now, then every change; `nil` while nobody is signed in. What could not be read (a
/// locked storage) is no change.
public typealias TokenStream = AccountChanges<TokenInfo?>

/// Whether somebody is signed in: the state of now, then every change.
public typealias AuthStates = AccountChanges<AuthState>
