import ProgramSupport
import TokenVaultPlatform

extension OAuthProgram {
    /// Throws `unavailable` when there are too few descriptors or threads for tasks, the vault and another
    /// program.
    ///
    /// Swift's tasks end the process without descriptors, and wait forever without threads. The stacks of two
    /// more threads cover the memory for an answer of the other program.
    static func requireRoom() throws(CommandFailure) {
        guard ProcessFacts.hasRoom(forDescriptors: 32) else {
            throw CommandFailure(
                .unavailable, "the limit of open files leaves too few for a request to the provider",
                "raise it (ulimit -n), and try again")
        }
        ProcessFacts.shareHeapWhereLimited()
        guard ProcessFacts.hasRoom(forThreads: 10) else {
            throw CommandFailure(
                .unavailable,
                "the limits of processes or of memory leave too little for a request to the provider",
                "raise them (ulimit -u, ulimit -v), or close other programs, and try again")
        }
    }
}
