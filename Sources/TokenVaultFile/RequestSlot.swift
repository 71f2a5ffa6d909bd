internal import Synchronization
internal import TokenVaultCore

/// Holds the request of a task, for a cancellation that may come before it is made.
final class RequestSlot: Sendable {
    private struct State {
        var request: WriteRequest?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func fill(_ request: WriteRequest) {
        let isCancelled = state.withLock { state in
            state.request = request
            return state.isCancelled
        }
        if isCancelled { request.cancel() }
    }

    func cancel() {
        let request = state.withLock { state in
            state.isCancelled = true
            return state.request
        }
        request?.cancel()
    }
}
