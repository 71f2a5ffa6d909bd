#if OAuth
import Synchronization

/// Something that happens once, and is waited for by one task.
final class Signal: Sendable {
    private let state = Mutex((isGiven: false, waiting: CheckedContinuation<Void, Never>?.none))

    func give() {
        state.withLock { state in
            state.isGiven = true
            defer { state.waiting = nil }
            return state.waiting
        }?.resume()
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isGiven = state.withLock { state in
                if !state.isGiven { state.waiting = continuation }
                return state.isGiven
            }
            if isGiven { continuation.resume() }
        }
    }
}
#endif
