import ProgramSupport
import TokenVaultPlatform

/// The signals that end this program, held back until what it made is cleared away. A second one ends it at once: what is asked
/// may not answer for a long time.
final class SignalGuard {
    private let signals: SignalForwarder
    private let caught = Monitor<CInt?>(nil)

    /// `last` is done before a second signal ends the program.
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

    /// Lets the signal that came have its effect. Does nothing when none has.
    func end() {
        signals.stop()
        if let signal = caught.withLock({ $0 }) { signals.deliver(signal) }
    }
}
