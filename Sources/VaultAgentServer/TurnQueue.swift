internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// Turns at what only few can do at once: each process in its turn, however many of its threads wait.
final class TurnQueue: Sendable {
    /// A turn, until it goes.
    final class Turn: Sendable {
        private let queue: TurnQueue
        private let process: Int32

        fileprivate init(_ queue: TurnQueue, _ process: Int32) {
            self.queue = queue
            self.process = process
        }

        deinit { queue.giveBack(process) }
    }

    /// Why there is no turn.
    enum Refusal: Error {
        /// The time is over.
        case timedOut
        /// Whoever waited does not want it any more.
        case unwanted
    }

    private struct Waiter {
        let process: Int32
        let number: UInt64
    }

    private struct State {
        var free: Int
        var waiting: [Waiter] = []
        var number: UInt64 = 0
        /// When each process had its last turn, of those that wait.
        var lastTurns: [Int32: UInt64] = [:]
        /// How many turns each process has now.
        var taken: [Int32: Int] = [:]

        /// Of the processes that have less than `share` turns, the one whose last turn is longest ago, and of that who came
        /// first.
        func next(_ share: Int) -> Waiter? {
            waiting.filter { taken[$0.process, default: 0] < share }.min {
                (lastTurns[$0.process] ?? 0, $0.number) < (lastTurns[$1.process] ?? 0, $1.number)
            }
        }

        mutating func leave(_ waiter: Waiter) {
            waiting.removeAll { $0.number == waiter.number }
            if !waiting.contains(where: { $0.process == waiter.process }) { lastTurns[waiter.process] = nil }
        }
    }

    private let state: Monitor<State>
    private let share: Int
    /// How long turns are waited for until those who have one are looked at.
    static let patience: Duration = .milliseconds(500)

    /// So many turns at once, `share` of them for one process.
    init(_ count: Int, share: Int) {
        state = Monitor(State(free: count))
        self.share = share
    }

    /// Waits for a turn, `timeout` at most. `isWanted` is asked when it comes, and whenever ``look()`` is called;
    /// `whileWaiting` is called now and then until it comes.
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
                guard state.free > 0, state.next(share)?.number == waiter.number else { return nil }
                state.number += 1
                state.lastTurns[process] = state.number
                state.taken[process, default: 0] += 1
                state.free -= 1
                return true
            }
            if isTurn != nil || deadline.hasPassed { break }
            whileWaiting()
        }
        // The next one may have been waiting for this one to decide.
        state.announce { $0.leave(waiter) }
        guard let isTurn else { throw .timedOut }
        guard isTurn else { throw .unwanted }
        return Turn(self, process)
    }

    /// Makes those who wait look whether they still want to.
    func look() { state.announce { _ in } }

    /// How many wait.
    var waiters: Int { state.withLock { $0.waiting.count } }

    private func giveBack(_ process: Int32) {
        state.announce { state in
            let left = state.taken[process, default: 1] - 1
            state.taken[process] = left > 0 ? left : nil
            state.free += 1
        }
    }
}

extension TokenStorageError {
    /// There was no turn to unlock.
    static let othersUnlock = noTurn("unlock", "others are unlocking")
    /// There was no turn to list.
    static let othersList = noTurn("list", "others are listing")
    /// Who asked does not wait any more.
    static let nobodyWaits = TokenStorageError(.closed, operation: "", backend: AgentPlace.backend)

    private static func noTurn(_ operation: String, _ reason: String) -> TokenStorageError {
        TokenStorageError(
            .timedOut, operation: operation, backend: AgentPlace.backend, underlying: reason,
            advice: "try again")
    }
}
