internal import CLinux
internal import Glibc

/// A thread for work that may block, so that none of it blocks Swift's cooperative pool.
///
/// Jobs run one at a time in the order given. The thread ends when the last reference goes and the jobs
/// given until then have run.
package final class WorkerThread: TaskExecutor {
    private struct Queue {
        var jobs: [@Sendable () -> Void] = []
        var ended = false
    }

    private let queue = Monitor(Queue())
    private let process = ProcessFacts.identifier

    /// Starts the thread. `name` shows in debuggers, at most 15 bytes of it.
    package init(name: String) {
        let queue = queue
        let body: @Sendable () -> Void = {
            clinux_name_thread(name)
            while true {
                let jobs: [@Sendable () -> Void]? = queue.wait { queue in
                    if !queue.jobs.isEmpty {
                        defer { queue.jobs = [] }
                        return .some(queue.jobs)
                    }
                    return queue.ended ? .some(nil) : nil
                }
                guard let jobs else { return }
                for job in jobs { job() }
            }
        }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let boxed = Unmanaged.passRetained(Box(body))
        var thread = pthread_t()
        let result = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, boxed.toOpaque())
        pthread_attr_destroy(&attributes)
        if result != 0 {
            // No thread to be had: jobs then run on the thread that gives them.
            boxed.release()
            self.queue.withLock { $0.ended = true }
        }
    }

    /// One as where the system gives no thread.
    package static var none: WorkerThread { WorkerThread() }

    private init() { queue.withLock { $0.ended = true } }

    /// Whether there is a thread; without one, jobs run on the thread that gives them.
    package var isRunning: Bool { queue.withLock { !$0.ended } }

    deinit { if process == ProcessFacts.identifier { queue.announce { $0.ended = true } } }

    /// Runs `job` on the thread, after the jobs given before.
    package func run(_ job: @escaping @Sendable () -> Void) {
        // In a forked child there is no such thread, and its lock may be held for ever.
        guard process == ProcessFacts.identifier else { return job() }
        let taken = queue.announce { queue in
            if queue.ended { return false }
            queue.jobs.append(job)
            return true
        }
        if !taken { job() }
    }

    /// Runs a part of a task on the thread: of one that was made with this thread as its `executorPreference`.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        run { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Lets other threads run on this processor first (`sched_yield`).
    package static func giveWay() { sched_yield() }

    private final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}
