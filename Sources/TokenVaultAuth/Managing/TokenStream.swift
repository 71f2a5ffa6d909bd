/// The tokens of an account: those of now, then every change; `nil` while nobody is signed in.
///
/// Every reader has a stream of its own. What could not be read (a locked storage) is no change: the first element comes
/// when it is known. A reader that is more than 1,024 changes behind misses the oldest. The sequence ends when its task is
/// cancelled or the manager is gone.
public struct TokenStream: AsyncSequence, Sendable {
    /// The tokens, or `nil` while nobody is signed in.
    public typealias Element = TokenInfo?
    /// The sequence never throws.
    public typealias Failure = Never

    let stream: AsyncStream<TokenInfo?>

    /// An iterator. All iterators of one stream share its elements.
    public func makeAsyncIterator() -> Iterator { Iterator(iterator: stream.makeAsyncIterator()) }

    /// Reads the stream.
    public struct Iterator: AsyncIteratorProtocol {
        var iterator: AsyncStream<TokenInfo?>.Iterator

        /// The next tokens; `nil` at the end.
        public mutating func next() async -> TokenInfo?? { await next(isolation: #isolation) }

        /// The next tokens; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TokenInfo?? {
            await iterator.next(isolation: actor)
        }
    }
}
