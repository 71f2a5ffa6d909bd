internal import Glibc
internal import SystemPackage

/// That this program is to end, as those see it that run for it: once told it stays so, whoever looks and whenever. So a
/// signal that came before a program was started is known to that one as well.
package final class EndingNotice: Sendable {
    private struct State {
        /// Whether it was told.
        var hasCome = false
        /// Whether no program is to be started any more.
        var isOver = false
        /// The programs that run, each of which leads a group.
        var running: Set<pid_t> = []
    }
    private let state = Monitor(State())
    // Readable since it was told: nobody takes that back.
    private let event: WakeEvent

    /// Throws what the system failed with: `EMFILE` without descriptors.
    package init() throws(SystemFailure) { event = try WakeEvent() }

    /// Tells everybody, those who begin later as well.
    package func tell() {
        state.withLock { $0.hasCome = true }
        event.wake()
    }

    /// Ends the programs that run and what they started; none is started any more. `last` is done before those who wait for
    /// them know that they ended.
    package func endAll(_ last: () -> Void = {}) {
        state.withLock { state in
            state.isOver = true
            for process in state.running { kill(-process, SIGKILL) }
            last()
        }
    }

    /// Becomes readable when it is told.
    var descriptor: CInt { event.descriptor }

    /// Whether it was told.
    var hasCome: Bool { state.withLock { $0.hasCome } }

    /// Runs `start`, unless no program is to be started any more, or none now that it was told and `evenAfterwards` does not
    /// hold: `EINTR` then. Whether it had been told.
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

    /// Waits for the end of a program that was started, whose number may be another's afterwards.
    func reap(_ process: pid_t) -> Int32 {
        ProgramStart.waitForEnd(of: process)
        return state.withLock { state in
            state.running.remove(process)
            return ProgramStart.wait(for: process)
        }
    }
}
