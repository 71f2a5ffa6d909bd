internal import Synchronization
internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What is known of an account, and who is told when that changes. Readers are told in the order of the changes.
final class SessionState: Sendable {
    private struct State {
        var snapshot: SessionSnapshot
        var readers: [UInt64: any BoardReader] = [:]
        var readersSoFar: UInt64 = 0
    }

    private let state: Mutex<State>
    private let clock: @Sendable () -> Date

    init(_ configuration: TokenManager.Configuration) {
        state = Mutex(State(snapshot: SessionSnapshot(configuration)))
        clock = configuration.clock
    }

    deinit { for reader in state.withLock({ $0.readers }).values { reader.finish() } }

    /// The access token, if it is known and good for longer than the buffer.
    var token: AccessToken? { state.withLock { $0.snapshot.token(at: clock()) } }

    /// What is known.
    var snapshot: SessionSnapshot { state.withLock { $0.snapshot } }

    /// Changes what is known, and tells the readers for whom it is something else now.
    func update(_ change: (inout SessionSnapshot) -> Void) {
        state.withLock { state in
            change(&state.snapshot)
            for number in state.readers.keys { state.readers[number]?.look(at: state.snapshot) }
        }
    }

    /// A new reader of what `view` gives, told at once if it gives something. What gives nothing is no change.
    func changes<Element: Equatable & Sendable>(
        _ view: @escaping @Sendable (SessionSnapshot) -> Element?
    ) -> AccountChanges<Element> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Element.self, bufferingPolicy: .bufferingNewest(1_024))
        let number = state.withLock { state in
            var reader = Reader(view: view, continuation: continuation)
            reader.look(at: state.snapshot)
            state.readersSoFar += 1
            state.readers[state.readersSoFar] = reader
            return state.readersSoFar
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.readers.removeValue(forKey: number) }
        }
        return AccountChanges(stream: stream)
    }
}

private protocol BoardReader: Sendable {
    mutating func look(at snapshot: SessionSnapshot)
    func finish()
}

private struct Reader<Element: Equatable & Sendable>: BoardReader {
    let view: @Sendable (SessionSnapshot) -> Element?
    let continuation: AsyncStream<Element>.Continuation
    private var told: Element?

    init(
        view: @escaping @Sendable (SessionSnapshot) -> Element?,
        continuation: AsyncStream<Element>.Continuation
    ) {
        self.view = view
        self.continuation = continuation
    }

    mutating func look(at snapshot: SessionSnapshot) {
        guard let element = view(snapshot), element != told else { return }
        told = element
        continuation.yield(element)
    }

    func finish() { continuation.finish() }
}
