internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// Turns at what only few can do at once: each process in its turn, however many of its threads wait.
final class TurnQueue: Sendable {
    /// A turn, until it goes.
    final class Turn: Sendable {
        private let queue: TurnQueue
        private let number: UInt64

        fileprivate init(_ queue: TurnQueue, _ number: UInt64) {
            self.queue = queue
            self.number = number
        }

        deinit { queue.release(number) }
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
        let count: Int
        let longest: Duration?
        var waiting: [Waiter] = []
        var number: UInt64 = 0
        /// When each process had its last turn, of those that wait.
        var lastTurns: [Int32: UInt64] = [:]
        /// Who has a turn, and since when.
        var taken: [UInt64: (process: Int32, since: ContinuousClock.Instant)] = [:]

        /// Of the processes that have less than `share` turns, the one whose last turn is longest ago, and of that who came
        /// first.
        func next(_ share: Int) -> Waiter? {
            waiting.filter { waiter in
                taken.values.count { $0.process == waiter.process } < share
            }.min {
                (lastTurns[$0.process] ?? 0, $0.number) < (lastTurns[$1.process] ?? 0, $1.number)
            }
        }

        /// Whether there is a turn. One that somebody has for too long is another's.
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
    /// How long turns are waited for until those who have one are looked at.
    static let patience: Duration = .milliseconds(500)

    /// So many turns at once, `share` of them for one process, each for the `longest` time; `nil` for any.
    init(_ count: Int, share: Int, longest: Duration? = nil) {
        state = Monitor(State(count: count, longest: longest))
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
                guard state.isFree(), state.next(share)?.number == waiter.number else { return nil }
                state.number += 1
                state.lastTurns[process] = state.number
                state.taken[waiter.number] = (process, .now)
                return true
            }
            if isTurn != nil || deadline.hasPassed { break }
            whileWaiting()
        }
        // The next one may have been waiting for this one to decide.
        state.announce { $0.leave(waiter) }
        guard let isTurn else { throw .timedOut }
        guard isTurn else { throw .unwanted }
        return Turn(self, waiter.number)
    }

    /// Makes those who wait look whether they still want to.
    func look() { state.announce { _ in } }

    /// How many wait.
    var waiters: Int { state.withLock { $0.waiting.count } }

    private func release(_ number: UInt64) { state.announce { $0.taken[number] = nil } }
}

extension TokenStorageError {
    /// There was no turn to unlock.
    static let othersUnlock = noTurn("unlock", .unlocking)
    /// There was no turn to list.
    static let othersList = noTurn("list", .listing)
    /// Who asked does not wait any more.
    static let nobodyWaits = TokenStorageError(.closed, operation: "", backend: AgentEndpoint.backend)

    private static func noTurn(
        _ operation: String, _ reason: TokenStorageError.Reason.Deadline
    ) -> TokenStorageError {
        TokenStorageError(
            .timedOut, operation: operation, backend: AgentEndpoint.backend, reason: .deadline(reason))
    }
}
