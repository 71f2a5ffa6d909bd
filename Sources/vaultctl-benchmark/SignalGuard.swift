import ProgramSupport
import TokenVaultPlatform

/// The signals that end this program, held back until the cleanup is done. A second signal ends the program
/// at once, because a backend may not answer for a long time.
final class SignalGuard {
    private let signals: SignalForwarder
    private let caught = Monitor<CInt?>(nil)

    /// Takes over the signals. `last` runs before a second signal ends the program.
    init(_ last: @escaping @Sendable () -> Void) throws(CommandFailure) {
        do throws(SystemFailure) {
            signals = try SignalForwarder(SignalForwarder.ending)
        } catch { throw CommandFailure(error, "the signals", "close other programs") }
        let isWatched = signals.watch { [caught] signal in
            let isFirst = caught.withLock { caught in
                defer { caught = caught ?? signal }
                return caught == nil
            }
            if isFirst || !SignalForwarder.insists(signal) { return }
            last()
            SignalForwarder.endProgram(by: signal)
        }
        guard isWatched else {
            throw CommandFailure(.failure, "the signals: no thread", "close other programs")
        }
    }

    /// Throws when a signal has come.
    func check() throws(CommandFailure) {
        if caught.withLock({ $0 }) != nil { throw .interrupted }
    }

    /// Lets a pending signal take effect. Does nothing without one.
    func end() {
        signals.stop()
        if let signal = caught.withLock({ $0 }) { signals.deliver(signal) }
    }
}
