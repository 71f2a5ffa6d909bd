internal import CLinux
internal import Glibc
internal import SystemPackage
internal import TokenVaultPlatform

/// A terminal without echo, from the answer to a prompt until the work with it is done. In the meantime the
/// user may type the same secret again.
///
/// A thread of its own restores the echo before SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN and
/// SIGTTOU take effect. It turns the echo off again when the program is continued.
package final class TerminalSilence: @unchecked Sendable {
    private let descriptor: CInt
    private let usual: termios
    // Used by the thread alone, until it has ended.
    private var signals: SignalForwarder?
    private var isQuiet = false
    private let wake: WakeEvent
    private let state = Monitor(State())

    private struct State {
        var isToEnd = false
        var hasEnded = false
    }

    /// Keeps the echo off. `usual` are the settings to restore. `nil` when the system has no thread or
    /// descriptor for it: nothing is changed then.
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

    /// Restores the echo, and discards typed bytes. A signal that came takes effect.
    package func end() {
        guard let signals = handOver()?.signals else { return restore() }
        restore()
        if let signal = signals.next() { signals.deliver(signal) } else { signals.stop() }
    }

    /// Ends the watching and leaves the echo off, for the next prompt. Returns `nil` when signals could not
    /// be watched.
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
            // The program was stopped and has been continued, or the stop had no effect.
            self.signals = try? SignalForwarder(SignalForwarder.endingOrStopping)
            if self.signals != nil { beQuiet() }
        }
        state.announce { $0.hasEnded = true }
    }

    /// Whether this program is in the terminal's foreground. In the background it leaves the terminal alone.
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
