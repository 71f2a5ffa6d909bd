internal import Synchronization

/// Threads for calls that may block, so that a call that waits for the user does not delay others. A thread
/// is started when none is idle, up to a maximum. Beyond that, jobs wait for their turn.
package final class WorkerPool: Sendable {
    private struct State {
        var idle: [WorkerThread] = []
        var count = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let name: String
    private let maximum: Int
    private let state = Mutex(State())

    /// Creates a pool of at most `maximum` threads, none of them started yet. `name` is shown in debuggers.
    package init(name: String, maximum: Int) {
        self.name = name
        self.maximum = maximum
    }

    /// Runs `job` on an idle thread.
    package func run(_ job: @escaping @Sendable () -> Void) {
        enum Choice { case use(WorkerThread), start, wait }
        let choice = state.withLock { state -> Choice in
            if let thread = state.idle.popLast() { return .use(thread) }
            if state.count < maximum {
                state.count += 1
                return .start
            }
            state.waiting.append(job)
            return .wait
        }
        switch choice {
        case .use(let thread): run(job, on: thread)
        case .start: run(job, on: WorkerThread(name: name))
        case .wait: break
        }
    }

    private func run(_ job: @escaping @Sendable () -> Void, on thread: WorkerThread) {
        thread.run { [weak self] in
            job()
            self?.next(on: thread)
        }
    }

    private func next(on thread: WorkerThread) {
        let job = state.withLock { state -> (@Sendable () -> Void)? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.idle.append(thread)
            return nil
        }
        if let job { run(job, on: thread) }
    }
}
