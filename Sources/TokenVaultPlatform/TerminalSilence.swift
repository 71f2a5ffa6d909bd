internal import CLinux
internal import Glibc
internal import SystemPackage

/// A terminal that goes on showing nothing of what is typed, from a question's answer until the work with it is done: what a
/// person types meanwhile may be the same secret again.
///
/// A thread of its own gives the echo back before SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN and SIGTTOU take
/// effect, and takes it again when the program is continued.
package final class TerminalSilence: @unchecked Sendable {
    private let descriptor: CInt
    private let usual: termios
    // The thread's, until it has ended.
    private var signals: SignalForwarder?
    private var isQuiet = false
    private let wake: WakeEvent
    private let state = Monitor(State())

    private struct State {
        var isToEnd = false
        var hasEnded = false
    }

    /// Keeps the echo off that is off now. `usual` are the settings to come back to. `nil` when the system has no thread or
    /// descriptor for it: all is left as it is.
    init?(_ terminal: CInt, usual: termios, _ signals: SignalForwarder) {
        let copy = clinux_duplicate(terminal, 10)
        guard copy >= 0 else { return nil }
        descriptor = copy
        self.usual = usual
        guard let wake = try? WakeEvent() else { return nil }
        self.wake = wake
        let thread = WorkerThread(name: "terminal")
        guard thread.isRunning else { return nil }
        self.signals = signals
        beQuiet()
        thread.run { self.watch() }
    }

    deinit { close(descriptor) }

    /// Gives the echo back, and throws away what was typed. A signal that came has its effect.
    package func end() {
        guard let signals = handOver()?.signals else { return restore() }
        restore()
        if let signal = signals.next() { signals.deliver(signal) } else { signals.stop() }
    }

    /// Ends the watching and leaves the echo off, for who asks next; `nil` when signals could not be watched.
    func handOver() -> (signals: SignalForwarder, usual: termios)? {
        state.withLock { $0.isToEnd = true }
        wake.wake()
        state.wait { $0.hasEnded ? () : nil }
        defer { signals = nil }
        return signals.map { ($0, usual) }
    }

    private func watch() {
        while !state.withLock({ $0.isToEnd }) {
            guard let signals, wake.wait(for: signals.descriptor), let signal = signals.next() else {
                if self.signals == nil { break }
                continue
            }
            restore()
            signals.deliver(signal)
            // It was stopped and is continued, unless there was nobody to continue it.
            self.signals = try? SignalForwarder(SignalForwarder.endingOrStopping)
            if self.signals != nil { beQuiet() }
        }
        state.announce { $0.hasEnded = true }
    }

    /// Another program's terminal is left alone: this one may go on in the background.
    private var isOurs: Bool { tcgetpgrp(descriptor) == getpgrp() }

    private func beQuiet() {
        guard isOurs else { return }
        var settings = usual
        settings.c_lflag &= ~tcflag_t(ECHO | ECHONL)
        isQuiet = tcsetattr(descriptor, TCSAFLUSH, &settings) == 0
    }

    private func restore() {
        guard isQuiet, isOurs else { return }
        var settings = usual
        tcsetattr(descriptor, TCSAFLUSH, &settings)
        isQuiet = false
    }
}
