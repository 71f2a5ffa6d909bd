internal import Synchronization
internal import TokenVaultPlatform

/// Brings the writers of one process together: whoever finds nobody writing writes for all that wait, in
/// one group with one `fdatasync`.
final class CommitQueue: Sendable {
    private struct State {
        var waiting: [WriteRequest] = []
        var isLed = false
    }

    private let state = Monitor(State())
    private let log: VaultLog
    // Started when first used: a program that only makes blocking calls has no threads of ours.
    private let threads = Mutex<(writer: WorkerThread?, reader: WorkerThread?)>((nil, nil))

    init(log: VaultLog) { self.log = log }

    /// The most that one group takes.
    private static let largestGroup = 1_024

    /// Commits on this thread, or waits for the thread that commits for it.
    func commit(
        _ prepare: @escaping WriteRequest.Preparation
    ) throws(TokenStorageError) -> Generation? {
        let outcome = Outcome()
        let request = WriteRequest(prepare: prepare) { result in outcome.value.withLock { $0 = result } }
        state.withLock { $0.waiting.append(request) }
        while true {
            enum Turn { case done(Result<Generation?, TokenStorageError>), lead([WriteRequest]) }
            let turn: Turn = state.wait { state in
                if let result = outcome.value.withLock({ $0 }) { return .done(result) }
                return Self.take(&state).map { .lead($0) }
            }
            switch turn {
            case .done(let result): return try result.get()
            case .lead(let requests): lead(requests)
            }
        }
    }

    private var worker: WorkerThread {
        threads.withLock { threads in
            let thread = threads.writer ?? WorkerThread(name: "vault-writer")
            threads.writer = thread
            return thread
        }
    }

    private var reader: WorkerThread {
        threads.withLock { threads in
            let thread = threads.reader ?? WorkerThread(name: "vault-reader")
            threads.reader = thread
            return thread
        }
    }

    /// Commits on the writer thread; `finished` is called there.
    func submit(_ request: WriteRequest) {
        state.withLock { $0.waiting.append(request) }
        worker.run { [self] in
            while true {
                let requests: [WriteRequest] = state.wait { state in
                    state.waiting.isEmpty ? [] : Self.take(&state)
                }
                if requests.isEmpty { return }
                lead(requests)
            }
        }
    }

    /// Runs what must be alone among this process's writers, on this thread.
    func alone<Value>(
        _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        state.wait { state -> Void? in
            if state.isLed { return nil }
            state.isLed = true
            return ()
        }
        defer { state.announce { $0.isLed = false } }
        return try body()
    }

    /// Runs a long read on a thread of its own, beside the writers.
    func read(_ job: @escaping @Sendable () -> Void) { reader.run(job) }

    private static func take(_ state: inout State) -> [WriteRequest]? {
        if state.isLed { return nil }
        state.isLed = true
        let taken = Array(state.waiting.prefix(largestGroup))
        state.waiting.removeFirst(taken.count)
        return taken
    }

    private func lead(_ requests: [WriteRequest]) {
        log.perform(requests)
        // The commits are acknowledged by now.
        log.tidy()
        state.announce { $0.isLed = false }
    }

    private final class Outcome: Sendable {
        let value = Mutex<Result<Generation?, TokenStorageError>?>(nil)
    }
}
