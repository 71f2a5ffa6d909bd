internal import Synchronization
internal import TokenVaultPlatform

/// The clock that a transaction measures its own times with.
struct TransactionClock: Sendable {
    /// The time since the machine started, including suspensions.
    var now: @Sendable () -> Duration
    /// Waits. Throws `CancellationError` as `Task.sleep(for:)` does.
    var sleep: @Sendable (Duration) async throws -> Void
    /// Whether a wakeup that comes late means that the process was suspended.
    var showsSuspensions = true

    /// The clock of the machine.
    static var machine: TransactionClock {
        TransactionClock(
            now: { .nanoseconds(Int64(clamping: SleepingAlarm.now)) },
            sleep: { try await Task.sleep(for: $0) })
    }
}

/// The time of one sign-in, renewal or sign-out: its deadline, the time to store what a provider gave, and a
/// cancellation. Time in which the process was suspended does not count against storing.
final class TransactionTime: Sendable {
    private struct State {
        /// The end of the attempts to store, and the time for an unfinished attempt after it.
        var storing: (end: Duration, patience: Duration)?
        /// The end of the time for the storage after a cancellation.
        var afterCancellation: Duration?
        /// The number of suspensions so far.
        var suspensions = 0
        /// The latest time of the next look at the clock.
        var look: Duration
    }

    private let clock: TransactionClock
    /// The end of the caller's time; `nil` without one.
    private let end: Duration?
    private let state: Mutex<State>
    private let watch = Mutex<Task<Void, Never>?>(nil)

    /// The time between two looks at the clock, short enough to detect a suspension of the process.
    private static var slice: Duration { .milliseconds(500) }
    /// The shortest time to store after a suspension.
    private static var leastAfterSuspension: Duration { .seconds(4) }

    init(until deadline: Deadline?, clock: TransactionClock = .machine) {
        self.clock = clock
        let now = clock.now()
        end = deadline.map { now + $0.remaining }
        state = Mutex(State(look: now + Self.slice))
        guard clock.showsSuspensions else { return }
        watch.withLock {
            $0 = Task.detached { [weak self] in
                while (try? await clock.sleep(Self.slice)) != nil, let self { _ = self.suspensions }
            }
        }
    }

    deinit { watch.withLock { $0?.cancel() } }

    /// The rest of the caller's time, never below zero; `nil` without a deadline.
    private var remaining: Duration? { end.map { max(.zero, $0 - clock.now()) } }

    /// Limits the requests of the caller to `limit`, and to the rest of the time.
    func limit(_ limit: Duration) -> Duration { min(limit, remaining ?? limit) }

    /// The number of times that the process or the machine was suspended so far.
    var suspensions: Int {
        state.withLock { state in
            let now = clock.now()
            if clock.showsSuspensions, now - state.look > Timeout.lateness {
                state.suspensions += 1
                if let storing = state.storing {
                    state.storing = (max(storing.end, now + Self.leastAfterSuspension), storing.patience)
                }
            }
            state.look = now + Self.slice
            return state.suspensions
        }
    }

    /// Begins the time to store what a provider gave: seven tenths of what is left, from a second to a minute.
    /// It is never zero, because the provider may reject the tokens before already.
    func beginStoring() {
        let left = (remaining ?? .seconds(600)).inSeconds
        state.withLock { state in
            state.storing = (
                clock.now() + .seconds(max(1, min(60, left * 0.7))),
                .seconds(min(1, max(0.5, left * 0.1)))
            )
        }
        noteAnswer()
    }

    /// Gives the storage a second from now to store the outcome of a request, even after a cancellation.
    func noteAnswer() {
        state.withLock { state in
            if state.afterCancellation != nil { state.afterCancellation = clock.now() + .seconds(1) }
        }
    }

    /// Gives the storage a second from now, and no more.
    func cancel() {
        state.withLock { state in
            if state.afterCancellation == nil { state.afterCancellation = clock.now() + .seconds(1) }
        }
    }

    /// Gives the storage `time` from now to undo what was stored.
    func beginUndoing(within time: Duration) {
        state.withLock { $0.afterCancellation = clock.now() + time }
    }

    /// Whether another attempt to store may begin.
    var mayStoreAgain: Bool {
        state.withLock { state in
            state.afterCancellation == nil && (state.storing.map { clock.now() < $0.end } ?? false)
        }
    }

    /// The time that the storage has for a call that begins now; `nil` for any.
    var storageLimit: Duration? {
        state.withLock { state in
            let now = clock.now()
            if let end = state.afterCancellation { return max(.zero, end - now) }
            if let (end, patience) = state.storing { return max(.zero, end - now + patience) }
            // The outcome of a request is stored even if the request took all of the time.
            return remaining.map { max($0, .seconds(1)) }
        }
    }

    /// Waits for `time`, or until the task is cancelled.
    func pause(_ time: Duration) async { try? await clock.sleep(time) }

    /// Returns the result of `work`; `nil` when it takes longer than the storage may take. A suspension of the
    /// process gives it some time more. The work goes on.
    func value<Value: Sendable>(of work: Task<Value, Never>) async -> Value? {
        let answer = OneAnswer<Value?>()
        let alarms = Alarms()
        let setAlarm = { @Sendable [self] in
            guard let limit = storageLimit else { return }
            alarms.add(
                Task.detached {
                    let more = self.clock.showsSuspensions ? Self.leastAfterSuspension : .zero
                    let isOver: Void? = try? await Timeout.end(
                        after: limit, more: more, sleep: self.clock.sleep)
                    if isOver != nil { answer.answer(nil) }
                })
        }
        setAlarm()
        Task.detached { answer.answer(await work.value) }
        let value = await withTaskCancellationHandler {
            await answer.value
        } onCancel: {
            cancel()
            setAlarm()
        }
        alarms.cancel()
        return value
    }
}

/// The alarms of one wait.
private final class Alarms: Sendable {
    private let set = Mutex<[Task<Void, Never>]>([])

    func add(_ alarm: Task<Void, Never>) { set.withLock { $0.append(alarm) } }

    func cancel() {
        for alarm in set.withLock({ $0 }) { alarm.cancel() }
    }
}

extension TransactionTime {
    /// Returns the result of `body`, which stores something. Tries again while `isWorthRetrying` holds for its
    /// error and time is left, and once more after an attempt during which the process was suspended.
    /// `waiting` gets the error before the first wait. No attempt begins after a cancellation.
    func storing<Value>(
        _ isWorthRetrying: (TokenError) -> Bool, waiting: (TokenError) -> Void = { _ in },
        _ body: () async throws(TokenError) -> Value
    ) async throws(TokenError) -> Value {
        var isTold = false
        while true {
            guard !Task.isCancelled else { throw .cancelled }
            let before = suspensions
            do throws(TokenError) { return try await body() } catch {
                let wasSuspended = suspensions != before
                guard !Task.isCancelled, wasSuspended || isWorthRetrying(error) && mayStoreAgain else {
                    throw error
                }
                if !isTold, !wasSuspended {
                    isTold = true
                    waiting(error)
                }
            }
            await pause(.milliseconds(250))
        }
    }
}
