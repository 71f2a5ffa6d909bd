internal import Synchronization

/// Threads for calls that may block beside one another: one that waits for a person does not keep the
/// others. A thread is started when none is idle, up to a bound; beyond it jobs wait for their turn.
package final class WorkerPool: Sendable {
    private struct State {
        var idle: [WorkerThread] = []
        var count = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let name: String
    private let maximum: Int
    private let state = Mutex(State())

    /// A pool of at most `maximum` threads, none of them started yet. `name` shows in debuggers.
    package init(name: String, maximum: Int) {
        self.name = name
        self.maximum = maximum
    }

    /// Runs `job` on a thread that has nothing else to do.
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
