internal import Glibc
internal import SystemPackage
package import TokenVaultPlatform

/// A notice that this program is about to end, for the code that runs helper programs. Once given it stays
/// visible to every later reader. So a signal that came before a helper started is also known to that helper.
package final class EndingNotice: Sendable {
    private struct State {
        /// Whether the notice was given.
        var hasCome = false
        /// Whether further programs are rejected.
        var isOver = false
        /// The running programs, each the leader of a process group.
        var running: Set<pid_t> = []
    }
    private let state = Monitor(State())
    // Readable since the notice was given. It is never reset.
    private let event: WakeEvent

    /// Creates a notice. Throws system errors: `EMFILE` without descriptors.
    package init() throws(SystemFailure) { event = try WakeEvent() }

    /// Gives the notice to all current and later readers.
    package func tell() {
        state.withLock { $0.hasCome = true }
        event.wake()
    }

    /// Kills the running programs with everything that they started, and rejects further programs. `last`
    /// runs before the waiting threads learn that the programs ended.
    package func endAll(_ last: () -> Void = {}) {
        state.withLock { state in
            state.isOver = true
            for process in state.running { kill(-process, SIGKILL) }
            last()
        }
    }

    /// A descriptor that becomes readable when the notice is given.
    var descriptor: CInt { event.descriptor }

    /// Whether the notice was given.
    var hasCome: Bool { state.withLock { $0.hasCome } }

    /// Runs `start`, and returns whether the notice had been given. Throws `EINTR` when further programs are
    /// rejected. Also throws `EINTR` after the notice unless `evenAfterwards` is true.
    func begin(
        evenAfterwards: Bool, _ start: () throws(SystemFailure) -> pid_t
    ) throws(SystemFailure) -> (process: pid_t, hasCome: Bool) {
        try state.withLock { (state) throws(SystemFailure) in
            guard !state.isOver, evenAfterwards || !state.hasCome else {
                throw SystemFailure(.interrupted, "posix_spawn")
            }
            let process = try start()
            state.running.insert(process)
            return (process, state.hasCome)
        }
    }

    /// Waits for the exit of a started program. Its process identifier may be reused afterwards.
    func reap(_ process: pid_t) -> Int32 {
        ProgramStart.waitForEnd(of: process)
        return state.withLock { state in
            state.running.remove(process)
            return ProgramStart.wait(for: process)
        }
    }
}
