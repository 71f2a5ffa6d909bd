internal import Synchronization
internal import TokenVaultCore
package import TokenVaultPlatform

/// Locks the vaults of this process when their time has come. One thread serves all of them, while one is
/// unlocked that is to lock itself.
package final class LockTimer: Sendable {
    private static let own = PerProcess { LockTimer() }
    package static var shared: LockTimer { own.current }

    /// Locks what is due; returns the time of the next look, or `nil` when there is nothing left to lock.
    typealias Look = @Sendable () -> UInt64?

    private struct Entry {
        let number: UInt64
        let look: Look
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var entriesSoFar: UInt64 = 0
        var alarm: (any AlarmClock)?
        var isRunning = false
    }

    private let state: Mutex<State>
    private let isIdle = Monitor(true)

    package init(clock: (any AlarmClock)? = nil) { state = Mutex(State(alarm: clock)) }

    /// The time now, in nanoseconds.
    var now: UInt64 { state.withLock { $0.alarm }?.now ?? SleepingAlarm.now }

    /// Calls `look` at its times until it says that there is nothing left to do. Throws `resourcesExhausted`
    /// when no timer or thread is available.
    func add(_ object: ObjectIdentifier, _ look: @escaping Look) throws(TokenStorageError) {
        let result = state.withLock { state in
            Result { () throws(TokenStorageError) in
                if state.alarm == nil {
                    state.alarm = try onDisk { () throws(SystemFailure) in try SleepingAlarm() }
                }
                try start(&state)
                state.entriesSoFar += 1
                state.entries[object] = Entry(number: state.entriesSoFar, look: look)
                return state.alarm
            }
        }
        try result.get()?.wake()
    }

    /// Waits until there is nothing left to lock and no thread.
    package func waitUntilIdle() { isIdle.wait { $0 ? () : nil } }

    private func start(_ state: inout State) throws(TokenStorageError) {
        guard !state.isRunning else { return }
        let thread = WorkerThread(name: "vault-lock")
        guard thread.isRunning else {
            throw .file(.resourcesExhausted, .shortage(.threadForLock))
        }
        state.isRunning = true
        isIdle.withLock { $0 = false }
        thread.run { [self] in while lookOnce() {} }
    }

    /// Locks what is due and waits for the next; returns false when nothing is left.
    private func lookOnce() -> Bool {
        let entries = state.withLock { $0.entries }
        var next: UInt64?
        var over: [(ObjectIdentifier, UInt64)] = []
        for (object, entry) in entries {
            if let time = entry.look() {
                next = min(next ?? time, time)
            } else {
                over.append((object, entry.number))
            }
        }
        let (alarm, isOver) = state.withLock { state in
            // An object that came meanwhile stays.
            for (object, number) in over where state.entries[object]?.number == number {
                state.entries[object] = nil
            }
            if state.entries.isEmpty {
                state.isRunning = false
                // Announced inside the lock, so that the announcement cannot hide a thread that starts now.
                isIdle.announce { $0 = true }
            }
            return (state.alarm, state.entries.isEmpty)
        }
        if isOver { return false }
        // Without a time, an object came meanwhile and has not been looked at.
        if let next { alarm?.wait(until: next) }
        return true
    }
}
