internal import Synchronization
internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The known state of an account, and the readers of its changes. Readers get the changes in their order.
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

    /// The known state.
    var snapshot: SessionSnapshot { state.withLock { $0.snapshot } }

    /// Changes the known state, and sends it to the readers whose view of it changed.
    func update(_ change: (inout SessionSnapshot) -> Void) {
        state.withLock { state in
            change(&state.snapshot)
            for number in state.readers.keys { state.readers[number]?.look(at: state.snapshot) }
        }
    }

    /// Returns a new sequence of the values of `view`, beginning with the present value if there is one. A
    /// `nil` of `view` is not a change.
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
