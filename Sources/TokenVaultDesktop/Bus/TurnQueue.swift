internal import Synchronization
internal import TokenVaultCore

/// Lets calls do something one at a time, in the order they came; waiting is bounded by each call's deadline.
final class TurnQueue: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [BusCall] = []
    }

    private let state = Mutex(State())

    /// Runs `body` when it is the call's turn. Throws `cancelled` and `timedOut`.
    func alone<Value>(
        _ call: BusCall, _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        try acquire(call)
        defer { release() }
        return try body()
    }

    private func acquire(_ call: BusCall) throws(TokenStorageError) {
        let isFree = state.withLock { state in
            if state.isTaken {
                state.waiting.append(call)
                return false
            }
            state.isTaken = true
            return true
        }
        if isFree { return }
        do throws(TokenStorageError) {
            try call.wait(isLost: { false }) { state -> Void? in
                guard state.hasTurn else { return nil }
                state.hasTurn = false
                return ()
            }
        } catch {
            let gaveUp = state.withLock { state in
                guard let index = state.waiting.firstIndex(where: { $0 === call }) else { return false }
                state.waiting.remove(at: index)
                return true
            }
            // The turn came just before the call gave up: the next call gets it.
            if !gaveUp {
                call.deliver { $0.hasTurn = false }
                release()
            }
            throw error
        }
    }

    private func release() {
        let next = state.withLock { state -> BusCall? in
            if state.waiting.isEmpty {
                state.isTaken = false
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.deliver { $0.hasTurn = true }
    }
}
