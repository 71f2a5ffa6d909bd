internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// Brings the writers of one process together: a writer that finds no other writing writes for all that wait,
/// in one group with one `fdatasync`.
final class CommitQueue: Sendable {
    private struct State {
        var waiting: [WriteRequest] = []
        var isLed = false
        /// The number of writers expected in a moment. It counts those written or waiting when the last group
        /// was about to be acknowledged, less those that came since.
        var expected = 0
        /// The deadline for waiting for them.
        var gathering: Deadline?
        /// Whether a writer waits for them.
        var isGathering = false
        /// The number of callers that wait to be alone. No writer leads before them: of writers that come
        /// again and again, one would always be sooner.
        var alone = 0

        /// Whether the gathering writer has to know that another one waits.
        var isComplete: Bool { isGathering && waiting.count >= expected }
    }

    private let state = Monitor(State())
    private let log: VaultLog
    // Started when first used: a program that only makes blocking calls has no threads of this library.
    private let threads = Mutex<(writer: WorkerThread?, reader: WorkerThread?)>((nil, nil))

    init(log: VaultLog) { self.log = log }

    /// The most requests of one group.
    private static let largestGroup = 1_024

    /// The time to wait for writers whose commits were just acknowledged. Of writers that store one thing
    /// after the other, half would otherwise always wait for the sync of the other half. The time is short
    /// against that sync.
    private static let gatheringTime: Duration = .microseconds(100)

    /// Commits on this thread, or waits for the thread that commits for it.
    func commit(
        _ prepare: @escaping WriteRequest.Preparation
    ) throws(TokenStorageError) -> Generation? {
        let outcome = Outcome()
        let request = WriteRequest(prepare: prepare) { result in outcome.value.withLock { $0 = result } }
        add(request)
        while true {
            enum Turn { case done(Result<Generation?, TokenStorageError>), lead }
            let turn: Turn = state.wait { state in
                if let result = outcome.value.withLock({ $0 }) { return .done(result) }
                return Self.takeLead(&state) ? .lead : nil
            }
            switch turn {
            case .done(let result): return try result.get()
            case .lead: lead()
            }
        }
    }

    private func add(_ request: WriteRequest) {
        let isComplete = state.withLock { state in
            state.waiting.append(request)
            return state.isComplete
        }
        if isComplete { state.announce { _ in } }
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
        add(request)
        worker.run { [self] in
            while true {
                let leads = state.wait { state -> Bool? in
                    if state.waiting.isEmpty { return false }
                    return Self.takeLead(&state) ? true : nil
                }
                guard leads else { return }
                lead()
            }
        }
    }

    /// Runs `body` without other writers of this process, on this thread.
    func alone<Value>(
        _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        state.withLock { $0.alone += 1 }
        state.wait { state -> Void? in
            if state.isLed { return nil }
            state.isLed = true
            state.alone -= 1
            return ()
        }
        defer { state.announce { $0.isLed = false } }
        return try body()
    }

    /// The number of callers that wait to be alone.
    var waitingAlone: Int { state.withLock { $0.alone } }

    /// Runs a long read on a thread of its own, beside the writers.
    func read(_ job: @escaping @Sendable () -> Void) { reader.run(job) }

    private static func takeLead(_ state: inout State) -> Bool {
        if state.isLed || state.alone > 0 { return false }
        state.isLed = true
        return true
    }

    /// Writes the waiting requests, with those that come meanwhile.
    private func lead() {
        // Other processes find the lock free while the writers expected back are waited for.
        var isOpen = !log.hasOtherWriters
        if !isOpen { awaitExpected() }
        let requests = state.withLock { Self.take(&$0) }
        var count = requests.count
        log.perform(requests) {
            guard isOpen else { return [] }
            let more = gather(atMost: Self.largestGroup - count)
            count += more.count
            return more
        } beforeTelling: {
            // Only the first group under a lock takes in others.
            isOpen = false
            // This comes before any of these writers can be back.
            state.withLock { $0.expected = count + $0.waiting.count }
        }
        let gathering = Deadline(after: Self.gatheringTime)
        // The commits are acknowledged by now.
        log.tidy()
        state.announce { state in
            state.isLed = false
            state.gathering = gathering
        }
    }

    /// Takes the requests that came meanwhile, while a writer is expected back. If none came, waits until all
    /// expected writers are back or their time is over.
    private func gather(atMost most: Int) -> [WriteRequest] {
        if most > 0, state.withLock({ $0.waiting.isEmpty }) { awaitExpected() }
        return state.withLock { $0.expected > 0 ? Self.take(&$0, atMost: most) : [] }
    }

    /// Waits until all expected writers wait, or their time is over.
    private func awaitExpected() {
        let wait = state.withLock { state -> Duration in
            guard state.waiting.count < state.expected, let until = state.gathering else { return .zero }
            state.isGathering = !until.hasPassed
            return until.remaining
        }
        if wait > .zero { state.wait(atMost: wait) { $0.isComplete ? () : nil } }
        state.withLock { $0.isGathering = false }
    }

    private static func take(_ state: inout State, atMost most: Int = largestGroup) -> [WriteRequest] {
        let taken = Array(state.waiting.prefix(most))
        state.waiting.removeFirst(taken.count)
        state.expected = max(0, state.expected - taken.count)
        return taken
    }

    private final class Outcome: Sendable {
        let value = Mutex<Result<Generation?, TokenStorageError>?>(nil)
    }
}
