internal import CLinux
internal import Glibc

/// A thread for work that may block, so that the work does not block Swift's cooperative pool.
///
/// Jobs run one at a time in the given order. The thread ends when the last reference is released and all
/// jobs have run.
@usableFromInline package final class WorkerThread: TaskExecutor {
    private struct Queue {
        var jobs: [@Sendable () -> Void] = []
        var ended = false
    }

    private let queue = Monitor(Queue())
    private let process = ProcessFacts.identifier

    /// Starts the thread. At most 15 bytes of `name` are shown in debuggers.
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
            // No thread can be started: jobs then run on the calling thread.
            boxed.release()
            self.queue.withLock { $0.ended = true }
        }
    }

    /// A worker without a thread, as when the system has none.
    package static var none: WorkerThread { WorkerThread() }

    private init() { queue.withLock { $0.ended = true } }

    /// Whether there is a thread. Without one, jobs run on the calling thread.
    package var isRunning: Bool { queue.withLock { !$0.ended } }

    deinit { if process == ProcessFacts.identifier { queue.announce { $0.ended = true } } }

    /// Runs `job` on the thread, after the earlier jobs.
    @usableFromInline package func run(_ job: @escaping @Sendable () -> Void) {
        // In a forked child the thread does not exist, and its lock may be held forever.
        guard process == ProcessFacts.identifier else { return job() }
        let taken = queue.announce { queue in
            if queue.ended { return false }
            queue.jobs.append(job)
            return true
        }
        if !taken { job() }
    }

    /// Runs a part of a task on the thread, for tasks with this thread as their `executorPreference`.
    @usableFromInline package func enqueue(_ job: consuming ExecutorJob) {
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

extension WorkerThread {
    /// Returns the result of `body`, run on this thread.
    @inlinable package func result<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            run { continuation.resume(returning: Result { () throws(Failure) in try body() }) }
        }
        return try result.get()
    }
}
