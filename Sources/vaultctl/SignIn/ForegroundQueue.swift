import TokenVaultPlatform

/// Runs work on tasks while the calling thread shows the user what has to be shown. Only that thread may use the
/// `Context`.
final class ForegroundQueue<Context>: Sendable {
    private struct State {
        var acts: [@Sendable (Context) -> Void] = []
        var task: Task<Void, Never>?
        var isCancelled = false
        var isOver = false
    }
    private let state = Monitor(State())

    /// Cancels the work, also if it is begun later.
    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    /// Has the waiting thread run `act`.
    func post(_ act: @escaping @Sendable (Context) -> Void) { state.announce { $0.acts.append(act) } }

    /// Has the waiting thread run `act`, and returns its result. Blocks the caller.
    func ask<Answer: Sendable>(_ act: @escaping @Sendable (Context) -> Answer) -> Answer {
        let answer = Monitor<Answer?>(nil)
        post { context in
            let value = act(context)
            answer.announce { $0 = value }
        }
        return answer.wait { $0 }
    }

    /// Runs `body` in a task and returns its result. Runs what is posted meanwhile on this thread.
    func run<Value: Sendable>(_ context: Context, _ body: @escaping @Sendable () async -> Value) -> Value {
        let result = Monitor<Value?>(nil)
        let task = Task.detached { [state] in
            let value = await body()
            result.withLock { $0 = value }
            state.announce { $0.isOver = true }
        }
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
        while true {
            let acts = state.wait { state -> [@Sendable (Context) -> Void]? in
                guard !state.acts.isEmpty || state.isOver else { return nil }
                defer { state.acts = [] }
                return state.acts
            }
            for act in acts { act(context) }
            if acts.isEmpty { return result.wait { $0 } }
        }
    }
}
