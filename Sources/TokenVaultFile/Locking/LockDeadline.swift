internal import Synchronization
internal import TokenVaultCore

/// The time when one vault locks itself. Each use checks it too, so that a use after the deadline finds the
/// vault locked, whether the timer has run or not.
final class LockDeadline: Sendable {
    private struct State {
        var rule: AutomaticLock?
        /// The time that the rule counts from; `nil` while there is nothing to lock.
        var beginning: UInt64?

        func deadline() -> UInt64? {
            guard let rule, let beginning else { return nil }
            let (time, isBeyond) = beginning.addingReportingOverflow(rule.nanoseconds)
            return isBeyond ? .max : time
        }
    }

    private let state: Mutex<State>
    let timer: LockTimer

    init(rule: AutomaticLock?, timer: LockTimer) {
        state = Mutex(State(rule: rule))
        self.timer = timer
    }

    var rule: AutomaticLock? { state.withLock { $0.rule } }

    /// Sets another rule. Its time counts from now on if there is something to lock.
    func set(_ rule: AutomaticLock?) {
        state.withLock { state in
            state.rule = rule
            if state.beginning != nil { state.beginning = timer.now }
        }
    }

    /// Counts the time from now on, since the vault is unlocked.
    func begin() { state.withLock { $0.beginning = timer.now } }

    /// Stops counting: nothing is left to lock.
    func end() { state.withLock { $0.beginning = nil } }

    /// The time when the vault locks itself; `nil` when it does not.
    var deadline: UInt64? { state.withLock { $0.deadline() } }

    /// Runs `lock` if the time has come. If not, and this is a use, an idle vault's time begins again.
    func lockIfDue(asUse isUse: Bool, _ lock: () -> Void) {
        state.withLock { state in
            guard let deadline = state.deadline() else { return }
            let now = timer.now
            if now >= deadline {
                lock()
                state.beginning = nil
            } else if isUse, state.rule?.beginning == .use {
                state.beginning = now
            }
        }
    }
}
