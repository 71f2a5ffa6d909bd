import ProgramSupport
import TokenVaultPlatform

/// A task, for a program that has none: its one thread waits.
struct Tasks<Value: Sendable>: Sendable {
    private let answer = Monitor<Value?>(nil)

    /// Begins `body`, for which there is room.
    init(_ body: @escaping @Sendable () async -> Value) {
        Task.detached { [answer] in
            let value = await body()
            answer.announce { $0 = value }
        }
    }

    /// What it gives; `nil` when `deadline` passes first.
    func wait(until deadline: Deadline?) -> Value? {
        guard let deadline else { return answer.wait { $0 } }
        return answer.wait(atMost: deadline.remaining) { $0 }
    }
}

extension Tasks<Never> {
    /// Throws `unavailable` when there are fewer descriptors or threads than tasks, the vault and another program take: where
    /// Swift's tasks get no descriptors they end the program, and where they get no thread they wait for one for ever. The
    /// stacks of two more threads are the memory that an answer of the other program may take.
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
