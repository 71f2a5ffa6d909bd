import Glibc
import Testing
import TokenVaultPlatform

/// How a program ends by a signal that it took.
@Suite struct SignalForwarderTests {
    /// The signal goes to the thread that ends the program. Another thread might take it later than what
    /// follows.
    @Test func theThreadThatEndsTheProgramTakesTheSignal() async {
        for _ in 0..<20 {
            await #expect(processExitsWith: .signal(SIGQUIT)) { SignalForwarder.endProgram(by: SIGQUIT) }
        }
    }

    @Test func whatWasTakenHasItsEffectBeforeTheProgramGoesOn() async {
        for _ in 0..<20 {
            await #expect(processExitsWith: .signal(SIGQUIT)) {
                let signals = try SignalForwarder(SignalForwarder.ending)
                signals.deliver(SIGQUIT)
                exit(1)
            }
        }
    }

    /// A watcher has received all signals that were taken by the time the forwarder stops.
    @Test func nothingIsTakenThatIsNotTold() async {
        await #expect(processExitsWith: .success) {
            // The threads of tasks do not take this signal.
            SignalForwarder.admit([SIGTERM])
            for _ in 0..<1_000 {
                let told = Monitor<[CInt]>([])
                let signals = try SignalForwarder(SignalForwarder.ending)
                guard signals.watch({ signal in told.withLock { $0.append(signal) } }) else { exit(2) }
                raise(SIGTERM)
                signals.stop()
                if told.withLock({ $0 }) != [SIGTERM] { exit(3) }
            }
            exit(0)
        }
    }
}
