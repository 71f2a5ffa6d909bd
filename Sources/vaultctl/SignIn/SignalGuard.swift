import OAuthWire
import ProgramSupport
import TokenVaultPlatform

/// Handles signals that would end the program while it may have new tokens. After the first signal the tokens
/// are revoked or stored. The second signal ends the program at once, and a note reports the consequences.
final class SignalGuard: Sendable {
    private struct State {
        /// The first signal.
        var signal: CInt?
        /// Whether signals are taken.
        var isTaking = false
        /// Whether the work of ``attempt(again:_:undo:)`` has ended.
        var isDone = false
        /// Whether that work is abandoned, so that a late success must be undone.
        var isGivenUp = false
        /// Whether the program ends by itself.
        var isOver = false
        /// The consequences if the program ends at once; `nil` without any.
        var left: String?
    }
    private let state = Monitor(State())
    private let told: @Sendable (CInt) -> Void
    // The notice for worker programs that run or are about to start.
    private let notice: EndingNotice?
    // The work in progress while the user waits for the end.
    private let meanwhile: String

    /// Creates a guard. `told` runs at the first signal. `meanwhile` is the message to the user when the end
    /// takes a moment.
    init(
        meanwhile: String = "what the provider may have given is being given back",
        _ told: @escaping @Sendable (CInt) -> Void = { _ in }
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
    func parting(_ operation: WorkerRequest.Operation) -> HelperProgram.ShutdownPolicy? {
        guard let notice, state.withLock({ $0.isTaking }) else { return nil }
        return switch operation {
        case .browser, .device: HelperProgram.ShutdownPolicy(notice, within: Self.patience)
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
    static let given = "what the provider gave may be good until it expires"

    /// Sets the consequences of an immediate end from now on. Abandoned work keeps its earlier consequences.
    func note(leaving left: String) { state.withLock { if !$0.isGivenUp { $0.left = left } } }

    /// Clears the consequences: the tokens are stored for good, or the provider knows, or a note was printed.
    /// Abandoned work keeps its consequences.
    func noteSettled() { state.withLock { if !$0.isGivenUp { $0.left = nil } } }

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
        notice?.tell()
        told(signal)
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

    /// Runs `body` in its own thread and returns the result; `nil` if a signal came and `body` did not end
    /// within a moment.
    ///
    /// If `body` succeeds after that, `undo` receives the result on that thread; see ``waitForUndoing()``. If
    /// the process was suspended during a failed attempt, `body` runs once more, with `again` set.
    func attempt<Value: Sendable, Failure: Error>(
        again: Bool = false, _ body: @escaping @Sendable (_ again: Bool) throws(Failure) -> Value,
        undo: @escaping @Sendable (Value) -> Void
    ) -> Result<Value, Failure>? {
        let outcome = Monitor<Result<Value, Failure>?>(nil)
        state.withLock { $0.isDone = false }
        let look = Deadline(after: Self.slice)
        let thread = WorkerThread(name: "storing")
        thread.run { [state] in
            let result = Result { () throws(Failure) in try body(again) }
            outcome.withLock { $0 = result }
            let isLate = state.announce { state in
                state.isDone = !state.isGivenUp
                return state.isGivenUp
            }
            guard isLate else { return }
            if case .success(let value) = result { undo(value) }
            state.announce { $0.isDone = true }
        }
        let wasAway = waitForAttempt(next: look)
        if signal != nil { _ = state.wait(atMost: .seconds(1)) { $0.isDone ? () : nil } }
        let isDone = state.withLock { state in
            state.isGivenUp = !state.isDone
            return state.isDone
        }
        guard isDone else { return nil }
        let result = outcome.withLock { $0 }
        if case .failure = result, wasAway, signal == nil { return attempt(again: true, body, undo: undo) }
        return result
    }

    /// Waits for `time`, or until a signal comes.
    func wait(atMost time: Duration) { _ = state.wait(atMost: time) { $0.signal == nil ? nil : () } }

    /// Waits a moment for abandoned work to end and to be undone. Returns whether it may still succeed
    /// without being undone.
    func waitForUndoing() -> Bool {
        state.wait(atMost: .seconds(5)) { !$0.isGivenUp || $0.isDone ? () : nil } == nil
    }

    /// Waits until the attempt ends or a signal comes. Returns whether the process was suspended for some of
    /// the time. `next` is the deadline of the first look; a suspension between two looks is detected as
    /// well.
    private func waitForAttempt(next: Deadline) -> Bool {
        var (next, wasAway) = (next, false)
        while true {
            let isOver = state.wait(atMost: Self.slice) { $0.isDone || $0.signal != nil ? true : nil }
            wasAway = wasAway || next.lateness > Self.lateness
            next = Deadline(after: Self.slice)
            if isOver ?? false { return wasAway }
        }
    }

    /// The length of one wait, short enough to detect a suspension of the process.
    static let slice = Duration.milliseconds(500)
    /// How late a wakeup may be before the process is assumed to have been suspended.
    static let lateness = Duration.seconds(1)

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
