import OAuthWire
import ProgramSupport
import TokenVaultAuth
import TokenVaultPlatform

/// Handles signals that would end the program while it may have new tokens. After the first signal the tokens
/// are revoked or stored. The second signal ends the program at once, and a note reports the consequences.
final class SignalGuard: Sendable {
    private struct State {
        /// The first signal.
        var signal: CInt?
        /// Whether signals are taken.
        var isTaking = false
        /// Whether the program ends by itself.
        var isOver = false
        /// The consequences if the program ends at once; `nil` without any.
        var left: String?
    }
    private let state = Monitor(State())
    private let told: @Sendable () -> Void
    // The notice for worker programs that run or are about to start.
    private let notice: EndingNotice?
    // The work in progress while the user waits for the end.
    private let meanwhile: String

    /// Creates a guard. `told` runs at the first signal. `meanwhile` is the message to the user when the end
    /// takes a moment.
    init(
        meanwhile: String = "tokens that the provider may have issued are being revoked",
        _ told: @escaping @Sendable () -> Void = {}
    ) {
        self.meanwhile = meanwhile
        self.told = told
        notice = try? EndingNotice()
    }

    /// The first signal, if one came.
    var signal: CInt? { state.withLock { $0.signal } }

    /// Runs `body` while this guard takes signals, and returns the result. A pending signal takes effect
    /// afterwards, when new tokens have been revoked or stored. If signals cannot be taken, they take effect
    /// at once.
    ///
    /// A closed or blocked output neither ends nor delays the program meanwhile, because new tokens would be
    /// lost.
    func during<Value>(_ body: () throws(CommandFailure) -> Value) throws(CommandFailure) -> Value {
        var signals = notice == nil ? nil : try? SignalForwarder(SignalForwarder.ending)
        let isWatched = signals?.watch { [self] in
            if !take($0), SignalForwarder.insists($0) { end(by: $0) }
        }
        if isWatched == false { signals = nil }
        StandardStream.outliveReaders()
        defer { StandardStream.endWithReaders() }
        guard let signals else { return try body() }
        state.announce { $0.isTaking = true }
        let outcome = Result { () throws(CommandFailure) in try body() }
        state.announce { $0.isOver = true }
        // The order matters, so that no signal in between is lost.
        signals.stop()
        if let signal { signals.deliver(signal) }
        return try outcome.get()
    }

    /// Returns the way in which a signal ends the worker for `operation`; `nil` when signals keep their
    /// default effect.
    func parting(_ operation: WorkerRequest.Operation.Kind) -> HelperProgram.ShutdownPolicy? {
        guard let notice, state.withLock({ $0.isTaking }) else { return nil }
        return switch operation {
        case .signIn, .exchange, .prove: HelperProgram.ShutdownPolicy(notice, within: Self.patience)
        // The stored session needs the new tokens, which the provider issues once. The answer is often on its
        // way.
        case .refresh: HelperProgram.ShutdownPolicy(notice, within: .seconds(2), isTold: false)
        // A revocation gives tokens back, so it starts even after a signal.
        case .revoke: HelperProgram.ShutdownPolicy(notice, within: .seconds(5), comesAfterwards: true)
        }
    }

    // The worker needs at most 7 seconds: a moment for an answer on its way, then the revocation.
    private static let patience = Duration.seconds(8)

    /// The consequences of an immediate end when the provider may have issued tokens.
    static let given = "the issued tokens may be valid until they expire"

    /// Sets the consequences of an immediate end from now on.
    func note(leaving left: String) { state.withLock { $0.left = left } }

    /// Sets the consequences of an immediate end in this state of a transaction.
    func note(_ entered: TransactionState) {
        let left: String? =
            switch entered {
            case .storedUnrevoked:
                "signed in, but the tokens of the previous sign-in may be valid until they expire"
            case .ending:
                "the session may be deleted from the vault but not revoked: \(Self.given)"
            case .endedUnrevoked:
                "signed out here, but the session may not have been revoked: \(Self.given)"
            // The tokens are stored, the provider knows, or a note is printed.
            case .settled: nil
            }
        state.withLock { $0.left = left }
    }

    /// Takes a signal. Returns whether it is the first.
    private func take(_ signal: CInt) -> Bool {
        let isFirst = state.announce { state in
            guard state.signal == nil else { return false }
            state.signal = signal
            return true
        }
        guard isFirst else { return false }
        // A reader that does not read must not keep the program alive.
        StandardStream.hurry(within: .seconds(2))
        // The work knows of the signal before a worker ends because of it.
        told()
        notice?.tell()
        let thread = WorkerThread(name: "patience")
        guard thread.isRunning else { return true }
        thread.run { [state, meanwhile] in
            guard state.wait(atMost: .seconds(1), { $0.isOver ? () : nil }) == nil,
                state.withLock({ $0.left != nil })
            else { return }
            Self.note("\(meanwhile); Ctrl-C ends this at once")
        }
        return true
    }

    /// Prints a note from any thread, so not through the console.
    static func note(_ text: String) {
        try? StandardStream.error.write(Array("\nvaultctl: note: \(text)\n".utf8))
    }

    /// Ends the program and its workers at the second signal. Threads that wait for the workers print nothing
    /// more.
    private func end(by signal: CInt) -> Never {
        notice?.endAll { leave(by: signal) }
        leave(by: signal)
    }

    private func leave(by signal: CInt) -> Never {
        StandardStream.hurry(within: .zero)
        if let left = state.withLock({ $0.left }) { Self.note("ended at once: \(left)") }
        SignalForwarder.endProgram(by: signal)
    }
}
