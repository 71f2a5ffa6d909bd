import Synchronization

@testable import TokenVaultAuth

/// A clock that stands still until a test moves it, so that no time limit depends on how busy the machine is.
/// Pauses of less than a second only let other tasks run.
final class StandingClock: Sendable {
    private struct State {
        var now = Duration.zero
        var sleepers: [Int: (end: Duration, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var cancelled: Set<Int> = []
        var next = 0
    }

    private let state = Mutex(State())

    var clock: TransactionClock {
        TransactionClock(
            now: { self.state.withLock { $0.now } }, sleep: { try await self.sleep($0) },
            showsSuspensions: false)
    }

    /// Moves the clock, which ends the waits that are over then.
    func advance(by time: Duration) {
        let over = state.withLock { state in
            state.now += time
            let over = state.sleepers.filter { $0.value.end <= state.now }
            for number in over.keys { state.sleepers[number] = nil }
            return over.values.map(\.continuation)
        }
        for continuation in over { continuation.resume() }
    }

    private func sleep(_ time: Duration) async throws {
        guard time >= .seconds(1) else {
            try Task.checkCancellation()
            return await Task.yield()
        }
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if state.cancelled.remove(number) != nil { return true }
                    state.sleepers[number] = (state.now + time, continuation)
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let sleeper = state.sleepers.removeValue(forKey: number)
                if sleeper == nil { state.cancelled.insert(number) }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Moves the clock until `body` returns.
    func moving<Value>(while body: () async -> Value) async -> Value {
        let mover = Task.detached {
            while !Task.isCancelled {
                self.advance(by: .milliseconds(100))
                await Task.yield()
            }
        }
        defer { mover.cancel() }
        return await body()
    }
}
