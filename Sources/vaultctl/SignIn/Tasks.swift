import ProgramSupport
import TokenVaultPlatform

/// A task for a program without tasks, whose one thread waits for the result.
struct Tasks<Value: Sendable>: Sendable {
    private let answer = Monitor<Value?>(nil)

    /// Starts `body`. The caller has checked that there is room for the task.
    init(_ body: @escaping @Sendable () async -> Value) {
        Task.detached { [answer] in
            let value = await body()
            answer.announce { $0 = value }
        }
    }

    /// Returns the result; `nil` when `deadline` passes first.
    func wait(until deadline: Deadline?) -> Value? {
        guard let deadline else { return answer.wait { $0 } }
        return answer.wait(atMost: deadline.remaining) { $0 }
    }
}

extension Tasks<Never> {
    /// Throws `unavailable` when there are too few descriptors or threads for tasks, the vault and another
    /// program.
    ///
    /// Swift's tasks end the process without descriptors, and wait forever without threads. The stacks of two
    /// more threads cover the memory for an answer of the other program.
    static func requireRoom() throws(CommandFailure) {
        guard ProcessFacts.hasRoom(forDescriptors: 32) else {
            throw CommandFailure(
                .unavailable, "the limit of open files leaves too few for asking the provider",
                "raise it (ulimit -n), and try again")
        }
        ProcessFacts.shareHeapWhereLimited()
        guard ProcessFacts.hasRoom(forThreads: 10) else {
            throw CommandFailure(
                .unavailable, "the limits of processes or of memory leave too little for asking the provider",
                "raise them (ulimit -u, ulimit -v), or close other programs, and try again")
        }
    }
}
