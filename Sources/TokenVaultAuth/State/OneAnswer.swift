internal import Synchronization

/// An answer that is given once and that one caller waits for.
final class OneAnswer<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, Never>)
        case answered(Value)
        case over
    }
    private let state = Mutex(State.open)

    /// Gives the answer. Returns false when there was one before, which counts.
    @discardableResult
    func answer(_ value: Value) -> Bool {
        let waiting: CheckedContinuation<Value, Never>?
        let isFirst: Bool
        (waiting, isFirst) = state.withLock { state in
            switch state {
            case .open:
                state = .answered(value)
                return (nil, true)
            case .awaited(let continuation):
                state = .over
                return (continuation, true)
            case .answered, .over: return (nil, false)
            }
        }
        waiting?.resume(returning: value)
        return isFirst
    }

    /// The answer, once there is one. Read once.
    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let answered = state.withLock { state -> Value? in
                    if case .answered(let value) = state {
                        state = .over
                        return value
                    }
                    state = .awaited(continuation)
                    return nil
                }
                if let answered { continuation.resume(returning: answered) }
            }
        }
    }
}
