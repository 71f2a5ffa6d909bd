import TokenVaultPlatform

/// The signals that would end the program while it may have what a provider gave: after the first one that is given back, and
/// the second one ends the program at once, which says what that leaves.
final class Interruption: Sendable {
    private struct State {
        /// The first.
        var signal: CInt?
        /// Whether what was done by ``attempt(again:_:)`` is done.
        var isDone = false
        /// Whether the program ends by itself.
        var isOver = false
    }
    private let state = Monitor(State())
    /// Woken with the first; `nil` without descriptors.
    private let came = try? WakeEvent()
    private let told: @Sendable (CInt) -> Void

    /// `told` is called with the first.
    init(_ told: @escaping @Sendable (CInt) -> Void = { _ in }) { self.told = told }

    /// The signal that came first, if any did.
    var signal: CInt? { state.withLock { $0.signal } }

    /// Takes signals until the result ends; `nil` where they cannot be taken and have their effect.
    func begin() -> SignalForwarder? {
        guard let signals = try? SignalForwarder(SignalForwarder.ending) else { return nil }
        return signals.watch({ [self] in if !take($0) { Self.end(by: $0) } }) ? signals : nil
    }

    /// Nothing is to be said of how it may be ended any more.
    func end() { state.announce { $0.isOver = true } }

    /// How the program that asks the provider is ended by a signal: it has this long to give back what it has. A signal that
    /// came before it was started, or while it was, ends it as well, unless it `isAfterSignals`: gives back what is left.
    func parting(isAfterSignals: Bool) -> HelperProgram.Parting {
        // The moment that the worker gives an answer that is on its way, and the revocation after it, take seven at most.
        HelperProgram.Parting(
            within: .seconds(8), came: isAfterSignals ? nil : came, isFirst: { [self] in take($0) },
            end: { Self.end(by: $0) })
    }

    /// Takes a signal; whether it is the first.
    private func take(_ signal: CInt) -> Bool {
        let isFirst = state.announce { state in
            guard state.signal == nil else { return false }
            state.signal = signal
            return true
        }
        guard isFirst else { return false }
        came?.wake()
        told(signal)
        let thread = WorkerThread(name: "patience")
        guard thread.isRunning else { return true }
        thread.run { [state] in
            guard state.wait(atMost: .seconds(1), { $0.isOver ? () : nil }) == nil else { return }
            Self.note("what the provider may have given is being given back; Ctrl-C ends this at once")
        }
        return true
    }

    /// What `body` gives, in a thread of its own; `nil` when a signal came and it has not ended a moment later. When the program
    /// was stopped or the machine slept meanwhile, and its time passed with that, it is tried once more; `body` is told when it
    /// is not the first time.
    func attempt<Value: Sendable, Failure: Error>(
        again: Bool = false, _ body: @escaping @Sendable (_ again: Bool) throws(Failure) -> Value
    ) -> Result<Value, Failure>? {
        let outcome = Monitor<Result<Value, Failure>?>(nil)
        state.withLock { $0.isDone = false }
        let look = Deadline(after: Self.slice)
        let thread = WorkerThread(name: "storing")
        thread.run { [state] in
            let result = Result { () throws(Failure) in try body(again) }
            outcome.withLock { $0 = result }
            state.announce { $0.isDone = true }
        }
        let wasAway = waitForAttempt(next: look)
        if signal != nil { _ = state.wait(atMost: .seconds(1)) { $0.isDone ? () : nil } }
        let result = outcome.withLock { $0 }
        if case .failure = result, wasAway, signal == nil { return attempt(again: true, body) }
        return result
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
    private static func note(_ text: String) {
        try? StandardStream.error.write(Array("\nvaultctl: note: \(text)\n".utf8))
    }

    private static func end(by signal: CInt) -> Never {
        note("ended at once: what the provider gave may be good until it expires")
        SignalForwarder.endProgram(by: signal)
    }
}
