import OAuthWire
import ProgramSupport
import TokenVaultPlatform

/// The signals that would end the program while it may have what a provider gave: after the first one that is given back, and
/// the second one ends the program at once, which says what that leaves.
final class SignalGuard: Sendable {
    private struct State {
        /// The first.
        var signal: CInt?
        /// Whether they are taken.
        var isTaking = false
        /// Whether what was done by ``attempt(again:_:undo:)`` is done.
        var isDone = false
        /// Whether that is not waited for any more, and to be undone when it succeeds all the same.
        var isGivenUp = false
        /// Whether the program ends by itself.
        var isOver = false
        /// What the program leaves when it ends at once; `nil` when that is nothing.
        var left: String?
    }
    private let state = Monitor(State())
    private let told: @Sendable (CInt) -> Void
    // For the programs that run meanwhile, or are about to be started.
    private let notice: EndingNotice?
    // What is being done while the person waits for the end.
    private let meanwhile: String

    /// `told` is called with the first. `meanwhile` is what a person is told when that takes a moment.
    init(
        meanwhile: String = "what the provider may have given is being given back",
        _ told: @escaping @Sendable (CInt) -> Void = { _ in }
    ) {
        self.meanwhile = meanwhile
        self.told = told
        notice = try? EndingNotice()
    }

    /// The signal that came first, if any did.
    var signal: CInt? { state.withLock { $0.signal } }

    /// What `body` gives, while signals are taken here. One that came has its effect afterwards: what it left is given back by
    /// then. Where signals cannot be taken they have their effect at once.
    ///
    /// Nobody who reads what is said, or does not, ends the program or keeps it meanwhile: what a provider gave would be lost.
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
        // In this order: none that is taken in between is forgotten.
        signals.stop()
        if let signal { signals.deliver(signal) }
        return try outcome.get()
    }

    /// How the program that asks the provider for `operation` is ended by a signal; `nil` where signals have their effect.
    func parting(_ operation: WorkerRequest.Operation) -> HelperProgram.ShutdownPolicy? {
        guard let notice, state.withLock({ $0.isTaking }) else { return nil }
        return switch operation {
        case .browser, .device: HelperProgram.ShutdownPolicy(notice, within: Self.patience)
        // The session that is stored needs what it brings, which the provider gives once: that is often on its way.
        case .refresh: HelperProgram.ShutdownPolicy(notice, within: .seconds(2), isTold: false)
        // What was given is given back with it, whenever the signal came.
        case .revoke: HelperProgram.ShutdownPolicy(notice, within: .seconds(5), comesAfterwards: true)
        }
    }

    // The moment that the worker gives an answer that is on its way, and the revocation after it, take seven at most.
    private static let patience = Duration.seconds(8)

    /// What is left by a program that ends at once when a provider may have given something.
    static let given = "what the provider gave may be good until it expires"

    /// A program that ends at once leaves this from now on, which it says then. Not of what is given up, which stays as it was.
    func note(leaving left: String) { state.withLock { if !$0.isGivenUp { $0.left = left } } }

    /// It leaves nothing any more: what a provider gave is stored and stays so, or the provider was told, or that it was not is
    /// said. Not of what is given up.
    func noteSettled() { state.withLock { if !$0.isGivenUp { $0.left = nil } } }

    /// Takes a signal; whether it is the first.
    private func take(_ signal: CInt) -> Bool {
        let isFirst = state.announce { state in
            guard state.signal == nil else { return false }
            state.signal = signal
            return true
        }
        guard isFirst else { return false }
        // Who writes to somebody that does not read is no reason to stay.
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

    /// What `body` gives, in a thread of its own; `nil` when a signal came and it has not ended a moment later: when it succeeds
    /// all the same, `undo` gets what came of it, on that thread; see ``waitForUndoing()``. When the program was stopped or the
    /// machine slept meanwhile, and its time passed with that, it is tried once more; `body` is told when it is not the first
    /// time.
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

    /// Gives an attempt that was given up a moment to end, and to be undone. Whether it may succeed yet, with nobody to undo it.
    func waitForUndoing() -> Bool {
        state.wait(atMost: .seconds(5)) { !$0.isGivenUp || $0.isDone ? () : nil } == nil
    }

    /// Returns when the attempt has ended, or a signal came: whether nobody was there for some of the time. `next` is when the
    /// first look is due; what passes between two looks is noticed as well.
    private func waitForAttempt(next: Deadline) -> Bool {
        var (next, wasAway) = (next, false)
        while true {
            let isOver = state.wait(atMost: Self.slice) { $0.isDone || $0.signal != nil ? true : nil }
            wasAway = wasAway || next.lateness > Self.lateness
            next = Deadline(after: Self.slice)
            if isOver ?? false { return wasAway }
        }
    }

    /// For how long is waited at a time, to know of a time that passed while nobody waited.
    static let slice = Duration.milliseconds(500)
    /// By how much that may be over.
    static let lateness = Duration.seconds(1)

    /// On whichever thread, so past the console.
    static func note(_ text: String) {
        try? StandardStream.error.write(Array("\nvaultctl: note: \(text)\n".utf8))
    }

    /// Ends the program, and those that run for it, at the second signal: whoever waits for them says nothing any more.
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
