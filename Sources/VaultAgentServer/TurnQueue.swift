internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// Limits the number of concurrent operations with turns, in the order of asking.
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

    private struct State {
        let count: Int
        let longest: Duration?
        /// The numbers of the waiters, in the order of asking.
        var waiting: [UInt64] = []
        var number: UInt64 = 0
        /// The starts of the turns that are taken.
        var taken: [UInt64: ContinuousClock.Instant] = [:]

        /// Returns whether a turn is free. A turn that has lasted too long counts as free.
        mutating func isFree() -> Bool {
            if let longest, taken.count == count {
                taken = taken.filter { $0.value.duration(to: .now) < longest }
            }
            return taken.count < count
        }
    }

    private let state: Monitor<State>
    /// The interval at which a waiter checks the clients with a turn.
    static let patience: Duration = .milliseconds(500)

    /// Creates a queue of `count` concurrent turns. Each turn lasts for `longest`; `nil` for no limit.
    init(_ count: Int, longest: Duration? = nil) { state = Monitor(State(count: count, longest: longest)) }

    /// Waits for a turn, for `timeout` at most. Calls `isWanted` when the turn comes and after each
    /// ``look()``. Calls `whileWaiting` from time to time during the wait.
    func turn(
        atMost timeout: Duration, whileWaiting: () -> Void = {}, isWanted: () -> Bool
    ) throws(Refusal) -> Turn {
        let number = state.withLock { state in
            state.number += 1
            state.waiting.append(state.number)
            return state.number
        }
        let deadline = Deadline(after: timeout)
        var isTurn: Bool?
        while true {
            isTurn = state.wait(atMost: min(deadline.remaining, Self.patience)) { state -> Bool? in
                guard isWanted() else { return false }
                guard state.isFree(), state.waiting.first == number else { return nil }
                state.taken[number] = .now
                return true
            }
            if isTurn != nil || deadline.hasPassed { break }
            whileWaiting()
        }
        // The next waiter may have been waiting for this one to decide.
        state.announce { state in state.waiting.removeAll { $0 == number } }
        guard let isTurn else { throw .timedOut }
        guard isTurn else { throw .unwanted }
        return Turn(self, number)
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
