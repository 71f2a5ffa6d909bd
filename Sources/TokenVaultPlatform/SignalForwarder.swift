internal import CLinux
internal import Glibc
internal import SystemPackage

/// Turns signals that would end or stop the program into something to read, for as long as it lives: so
/// that a terminal gets its echo back and a scratch directory is removed before the signal takes effect.
///
/// One at a time in a program; a second one takes over until it ends.
package final class SignalForwarder {
    private let reading: CInt
    private let writing: CInt
    private var previous: [(CInt, sigaction)] = []

    /// The signals that a person or a supervisor ends a program with.
    package static let ending: [CInt] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
    /// `SIGHUP`.
    package static let hangUp: CInt = SIGHUP
    /// Those, and the ones that stop it.
    package static let endingOrStopping: [CInt] = ending + [SIGTSTP, SIGTTIN, SIGTTOU]

    /// Forwards `signals` from now on, but for those that are ignored (`nohup`).
    package init(_ signals: [CInt]) throws(SystemFailure) {
        var ends: [CInt] = [-1, -1]
        let made = ends.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.map { clinux_pipe($0) } ?? -1
        }
        guard made == 0 else { throw SystemFailure(Errno(rawValue: errno), "pipe2") }
        reading = ends[0]
        writing = ends[1]
        clinux_forward_signals_to(writing)
        for signal in signals {
            var action = sigaction()
            if clinux_forward_signal(signal, &action) == 0 { previous.append((signal, action)) }
        }
    }

    deinit { stop() }

    /// Gives every signal the action it had.
    package func stop() {
        guard !previous.isEmpty else { return }
        for (signal, action) in previous {
            var action = action
            sigaction(signal, &action, nil)
        }
        previous = []
        clinux_forward_signals_to(-1)
        close(reading)
        close(writing)
    }

    /// Lets `signals` come, which who started the program may have blocked; for this thread and those it starts.
    package static func admit(_ signals: [CInt]) { for signal in signals { clinux_unblock_signal(signal) } }

    /// The descriptor that becomes readable when a signal came.
    var descriptor: CInt { reading }

    /// The signal that came first, if any did.
    package func next() -> CInt? {
        guard !previous.isEmpty else { return nil }
        var number: UInt8 = 0
        return read(reading, &number, 1) == 1 ? CInt(number) : nil
    }

    /// Stops forwarding and lets `signal` have its effect. Returns when the program survived it: it was
    /// stopped and continued, or its own handler returned.
    package func deliver(_ signal: CInt) {
        stop()
        kill(getpid(), signal)
    }

    /// The same on this thread, which does not go on before the program is stopped, whatever other threads do.
    func deliverHere(_ signal: CInt) {
        stop()
        raise(signal)
    }
}
