import TokenVaultPlatform

/// The signals that end this program, held back until what it made is cleared away.
final class Interruption {
    private let signals: SignalForwarder
    private var caught: CInt?

    init() throws(BenchmarkFailure) {
        do throws(SystemFailure) {
            signals = try SignalForwarder(SignalForwarder.ending)
        } catch { throw BenchmarkFailure(error, "the signals", "close other programs") }
    }

    /// Throws when a signal has come.
    func check() throws(BenchmarkFailure) {
        if caught == nil { caught = signals.next() }
        if caught != nil { throw .interrupted }
    }

    /// Lets the signal that came have its effect. Does nothing when none has.
    func end() {
        if let signal = caught ?? signals.next() { signals.deliver(signal) } else { signals.stop() }
    }
}
