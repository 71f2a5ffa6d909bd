internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// Limits the number of concurrent operations with turns. The processes take turns, regardless of the number
/// of their waiting threads.
final class TurnQueue: Sendable {
    /// A turn, until it is released.
    final class Turn: Sendable {
        private let queue: TurnQueue
        private let number: UInt64

        fileprivate init(_ queue: TurnQueue, _ number: UInt64) {
            self.queue = queue
            self.number = number
        }

        deinit { queue.release(number) }
    }

    /// The reason that there is no turn.
    enum Refusal: Error {
        /// The wait exceeded its time limit.
        case timedOut
        /// The turn is no longer needed.
        case unwanted
    }

    private struct Waiter {
        let process: Int32
        let number: UInt64
    }

    private struct State {
        let count: Int
        let longest: Duration?
        var waiting: [Waiter] = []
        var number: UInt64 = 0
        /// The last turn of each waiting process, as a number in order.
        var lastTurns: [Int32: UInt64] = [:]
        /// The processes that have a turn, and the start of each turn.
        var taken: [UInt64: (process: Int32, since: ContinuousClock.Instant)] = [:]

        /// Returns the next waiter among the processes with fewer than `share` turns. The process with the
        /// oldest last turn comes first, then the oldest waiter.
        func next(_ share: Int) -> Waiter? {
            waiting.filter { waiter in
                taken.values.count { $0.process == waiter.process } < share
            }.min {
                (lastTurns[$0.process] ?? 0, $0.number) < (lastTurns[$1.process] ?? 0, $1.number)
            }
        }

        /// Returns whether a turn is free. A turn that has lasted too long counts as free.
        mutating func isFree() -> Bool {
            if let longest, taken.count == count {
                taken = taken.filter { $0.value.since.duration(to: .now) < longest }
            }
            return taken.count < count
        }

        mutating func leave(_ waiter: Waiter) {
            waiting.removeAll { $0.number == waiter.number }
            if !waiting.contains(where: { $0.process == waiter.process }) { lastTurns[waiter.process] = nil }
        }
    }

    private let state: Monitor<State>
    private let share: Int
    /// The interval at which a waiter checks the clients with a turn.
    static let patience: Duration = .milliseconds(500)

    /// Creates a queue of `count` concurrent turns, at most `share` of them for one process. Each turn lasts
    /// for `longest`; `nil` for no limit.
    init(_ count: Int, share: Int, longest: Duration? = nil) {
        state = Monitor(State(count: count, longest: longest))
        self.share = share
    }

    /// Waits for a turn, for `timeout` at most. Calls `isWanted` when the turn comes and after each
    /// ``look()``. Calls `whileWaiting` from time to time during the wait.
    func turn(
        for process: Int32, atMost timeout: Duration, whileWaiting: () -> Void = {}, isWanted: () -> Bool
    ) throws(Refusal) -> Turn {
        let waiter = state.withLock { state in
            state.number += 1
            let waiter = Waiter(process: process, number: state.number)
            state.waiting.append(waiter)
            return waiter
        }
        let deadline = Deadline(after: timeout)
        var isTurn: Bool?
        while true {
            isTurn = state.wait(atMost: min(deadline.remaining, Self.patience)) { state -> Bool? in
                guard isWanted() else { return false }
                guard state.isFree(), state.next(share)?.number == waiter.number else { return nil }
                state.number += 1
                state.lastTurns[process] = state.number
                state.taken[waiter.number] = (process, .now)
                return true
            }
            if isTurn != nil || deadline.hasPassed { break }
            whileWaiting()
        }
        // The next waiter may have been waiting for this one to decide.
        state.announce { $0.leave(waiter) }
        guard let isTurn else { throw .timedOut }
        guard isTurn else { throw .unwanted }
        return Turn(self, waiter.number)
    }

    /// Makes all waiters check whether the turn is still needed.
    func look() { state.announce { _ in } }

    /// The number of waiters.
    var waiters: Int { state.withLock { $0.waiting.count } }

    private func release(_ number: UInt64) { state.announce { $0.taken[number] = nil } }
}

extension TokenStorageError {
    /// The error when there was no turn to unlock.
    static let othersUnlock = noTurn("unlock", .unlocking)
    /// The error when there was no turn to list.
    static let othersList = noTurn("list", .listing)
    /// The error when the client no longer waits.
    static let nobodyWaits = TokenStorageError(.closed, operation: "", backend: AgentEndpoint.backend)

    private static func noTurn(
        _ operation: String, _ reason: TokenStorageError.Reason.Deadline
    ) -> TokenStorageError {
        TokenStorageError(
            .timedOut, operation: operation, backend: AgentEndpoint.backend, reason: .deadline(reason))
    }
}
