internal import Synchronization

/// Runs one operation at a time and gives its outcome to all callers that asked meanwhile.
///
/// A cancelled caller stops waiting; the operation goes on for the others, and to its end even without
/// callers. If the operation does not end within `limit`, callers get `timedOut` until it has ended.
public final class TokenRefreshCoordinator<Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, TokenError>

    private struct Flight {
        var number: UInt64
        var waiting: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
        var isOverdue = false
    }

    private enum Step { case wait, begin(UInt64), refuse(TokenError) }

    private struct State {
        var flight: Flight?
        var flightsSoFar: UInt64 = 0
        var callersSoFar: UInt64 = 0
    }

    private let state = Mutex(State())
    private let limit: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let sleep: @Sendable (Duration) async throws -> Void

    /// Creates a coordinator without an operation. Callers wait for `limit` at most. If the process or the
    /// machine was suspended meanwhile, callers wait for forty seconds more.
    public convenience init(limit: Duration) {
        self.init(limit: limit, now: { .now }, sleep: { try await Task.sleep(for: $0) })
    }

    /// Creates the same with another clock.
    package init(
        limit: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.limit = limit
        self.now = now
        self.sleep = sleep
    }

    // The time that an operation needs after a suspension: to read or to abandon an answer, and to store it.
    private static var timeAfterAbsence: Duration { .seconds(40) }

    /// The number of operations so far.
    package var operationsSoFar: UInt64 { state.withLock { $0.flightsSoFar } }

    /// Returns the outcome of the running operation, or runs `operation` when there is none. Throws the
    /// errors of the operation, `cancelled` when the caller's task is cancelled, and `timedOut`.
    public func value(
        _ operation: @escaping @Sendable () async throws(TokenError) -> Value
    ) async throws(TokenError) -> Value {
        let caller = state.withLock { state in
            state.callersSoFar += 1
            return state.callersSoFar
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in join(caller, continuation, operation) }
        } onCancel: {
            leave(caller)
        }
        return try outcome.get()
    }

    private func join(
        _ caller: UInt64, _ continuation: CheckedContinuation<Outcome, Never>,
        _ operation: @escaping @Sendable () async throws(TokenError) -> Value
    ) {
        // The task was cancelled before the caller was entered: `leave` found no caller.
        let isCancelled = Task.isCancelled
        let step = state.withLock { state -> Step in
            if isCancelled { return .refuse(.cancelled) }
            if state.flight?.isOverdue == true { return .refuse(.timedOut) }
            if state.flight != nil {
                state.flight?.waiting[caller] = continuation
                return .wait
            }
            state.flightsSoFar += 1
            state.flight = Flight(number: state.flightsSoFar, waiting: [caller: continuation])
            return .begin(state.flightsSoFar)
        }
        switch step {
        case .wait: break
        case .refuse(let error): continuation.resume(returning: .failure(error))
        case .begin(let number): begin(number, operation)
        }
        // The task was cancelled between the check and the entry: `leave` came too early.
        if Task.isCancelled { leave(caller) }
    }

    private func begin(
        _ number: UInt64, _ operation: @escaping @Sendable () async throws(TokenError) -> Value
    ) {
        let alarm = Task.detached { [self] in
            try await Timeout.end(after: limit, more: Self.timeAfterAbsence, now: now, sleep: sleep)
            abandon(number)
        }
        // Not a child of the first caller's task, whose cancellation must not affect the others.
        Task.detached { [self] in
            let outcome: Outcome
            do throws(TokenError) { outcome = .success(try await operation()) } catch {
                outcome = .failure(error)
            }
            alarm.cancel()
            finish(outcome)
        }
    }

    private func finish(_ outcome: Outcome) {
        let waiting = state.withLock { state in
            defer { state.flight = nil }
            return state.flight?.waiting ?? [:]
        }
        for continuation in waiting.values { continuation.resume(returning: outcome) }
    }

    private func abandon(_ number: UInt64) {
        let waiting = state.withLock { state -> [UInt64: CheckedContinuation<Outcome, Never>] in
            guard state.flight?.number == number else { return [:] }
            state.flight?.isOverdue = true
            defer { state.flight?.waiting = [:] }
            return state.flight?.waiting ?? [:]
        }
        for continuation in waiting.values { continuation.resume(returning: .failure(.timedOut)) }
    }

    private func leave(_ caller: UInt64) {
        state.withLock { $0.flight?.waiting.removeValue(forKey: caller) }?
            .resume(returning: .failure(.cancelled))
    }
}
