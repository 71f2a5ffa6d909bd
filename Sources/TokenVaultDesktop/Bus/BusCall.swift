internal import Synchronization
internal import TokenVaultCore
package import TokenVaultPlatform

/// One call of a person's program: until when it may wait, whether it was cancelled, and what came for it.
///
/// Whatever it waits for is delivered here, so that one thread sleeps on one thing: a reply, a turn, a
/// prompt, a cancellation.
package final class BusCall: Sendable {
    /// What came of a prompt.
    enum PromptOutcome { case completed(Variant?), dismissed, lost }

    struct State {
        var replies: [UInt32: BusReply] = [:]
        var isCancelled = false
        // A write was sent, so a cancellation comes too late.
        var isWriting = false
        var hasTurn = false
        var isWriter = false
        var prompt: PromptOutcome?
        // The keyrings to unlock before the call can continue, and the items in them that the call needs.
        var locked: [String] = []
        var lockedItems: [String] = []
    }

    let state = Monitor(State())
    private let deadline: Mutex<Deadline>

    /// A call that may wait for `duration`.
    package init(timeout duration: Duration) { deadline = Mutex(Deadline(after: duration)) }

    /// Gives it more time: what a person took to answer does not count.
    func extend(by duration: Duration) {
        deadline.withLock { $0 = Deadline(after: $0.remaining + duration) }
    }

    /// A write is about to be sent: from here on the call runs to its end. Throws `timedOut` and, before the
    /// first one, `cancelled`.
    func beginWriting() throws(TokenStorageError) {
        try check()
        state.withLock { $0.isWriting = true }
    }

    /// Throws `timedOut` and `cancelled`. A loop that tries again whenever another program was faster calls
    /// this method.
    func check() throws(TokenStorageError) {
        if deadline.withLock({ $0.hasPassed }) { throw .secretService(.timedOut) }
        try checkCancellation()
    }

    /// Ends its waiting, unless it waits for the end of a write.
    func cancel() { state.announce { $0.isCancelled = true } }

    /// Delivers something.
    func deliver(_ change: (inout State) -> Void) { state.announce(change) }

    /// Throws `cancelled`.
    func checkCancellation() throws(TokenStorageError) {
        if state.withLock({ $0.isCancelled && !$0.isWriting }) { throw .secretService(.cancelled) }
    }

    private enum Answer<Value> { case value(Value), cancelled }

    /// Waits until `body` gives a value. Throws `cancelled`, `timedOut`, and
    /// `unavailable` when `isLost` says that nothing will come any more.
    func wait<Value>(
        longest: Duration? = nil, isLost: () -> Bool,
        _ body: (inout State) -> Value?
    ) throws(TokenStorageError) -> Value {
        let end = longest.map { Deadline(after: $0) } ?? deadline.withLock { $0 }
        while true {
            // GIO reports a lost connection only through its main loop, which this process does not run. The
            // connection is therefore checked at intervals.
            let wasLost = isLost()
            let answer: Answer<Value>? = state.wait(atMost: min(end.remaining, .milliseconds(100))) { state in
                if let value = body(&state) { return .value(value) }
                return state.isCancelled && !state.isWriting ? .cancelled : nil
            }
            switch answer {
            case .value(let value): return value
            case .cancelled: throw .secretService(.cancelled)
            case nil: break
            }
            if wasLost { throw .busIsLost }
            if end.hasPassed { throw .secretService(.timedOut) }
        }
    }
}

/// What came back for a message.
package enum BusReply: Sendable {
    /// The values returned, a tuple.
    case values(Variant)
    /// A descriptor that came with it.
    case descriptor(PassedDescriptor)
    /// An error: its name, as `org.freedesktop.DBus.Error.NoReply`, and its text.
    case error(name: String, text: String)
}
