/// The values that an account's readers get: the present value as soon as it is known, then every different
/// one.
///
/// Every reader has a separate sequence. A reader that is more than 1,024 changes behind misses the oldest.
/// The sequence ends when its task is cancelled or the manager is deallocated.
public struct AccountChanges<Element: Sendable>: AsyncSequence, Sendable {
    /// The sequence never throws.
    public typealias Failure = Never

    let stream: AsyncStream<Element>

    /// Returns an iterator. All iterators of one sequence share its elements.
    public func makeAsyncIterator() -> Iterator { Iterator(iterator: stream.makeAsyncIterator()) }

    /// An iterator over the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        var iterator: AsyncStream<Element>.Iterator

        /// Returns the next value; `nil` at the end.
        public mutating func next() async -> Element? { await next(isolation: #isolation) }

        /// Returns the next value; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            await iterator.next(isolation: actor)
        }
    }
}

/// The present tokens of an account, then every change; `nil` while the account is signed out. A failed read,
/// such as of a locked storage, is not a change.
public typealias TokenStream = AccountChanges<TokenInfo?>

/// The present sign-in state of an account, then every change.
public typealias AuthStates = AccountChanges<AuthState>
