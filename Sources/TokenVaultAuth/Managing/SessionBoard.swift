internal import Synchronization
internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What is known of an account, and who is told when that changes. Readers are told in the order of the changes.
final class SessionBoard: Sendable {
    private struct State {
        var snapshot: SessionSnapshot
        var readers: [UInt64: Reader] = [:]
        var readersSoFar: UInt64 = 0
    }

    private struct Reader {
        let continuation: AsyncStream<TokenInfo?>.Continuation
        /// What it was told last; `nil` before there was anything to tell.
        var told: TokenInfo??

        mutating func tell(_ tokens: TokenInfo?) {
            if case .some(let told) = told, told == tokens { return }
            told = .some(tokens)
            continuation.yield(tokens)
        }
    }

    private let state: Mutex<State>
    private let clock: @Sendable () -> Date

    init(_ configuration: TokenManager.Configuration) {
        state = Mutex(State(snapshot: SessionSnapshot(configuration)))
        clock = configuration.clock
    }

    deinit { for reader in state.withLock({ $0.readers }).values { reader.continuation.finish() } }

    /// The access token, if it is known and good for longer than the buffer.
    var token: AccessToken? { state.withLock { $0.snapshot.token(at: clock()) } }

    /// What is known.
    var snapshot: SessionSnapshot { state.withLock { $0.snapshot } }

    /// Changes what is known, and tells the readers if the tokens are others.
    @discardableResult
    func update<Value: Sendable>(_ change: (inout SessionSnapshot) -> Value) -> Value {
        state.withLock { state in
            let value = change(&state.snapshot)
            guard case .some(let tokens) = state.snapshot.tokens else { return value }
            for number in state.readers.keys { state.readers[number]?.tell(tokens) }
            return value
        }
    }

    /// A new reader, told at once what is known.
    func stream() -> TokenStream {
        let (stream, continuation) = AsyncStream.makeStream(
            of: TokenInfo?.self, bufferingPolicy: .bufferingNewest(1_024))
        let number = state.withLock { state in
            state.readersSoFar += 1
            var reader = Reader(continuation: continuation)
            if case .some(let tokens) = state.snapshot.tokens { reader.tell(tokens) }
            state.readers[state.readersSoFar] = reader
            return state.readersSoFar
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.readers.removeValue(forKey: number) }
        }
        return TokenStream(stream: stream)
    }
}
