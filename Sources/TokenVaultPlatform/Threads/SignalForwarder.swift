internal import CLinux
internal import Glibc
internal import SystemPackage

/// Turns signals that would end or stop the program into readable events, during its lifetime. A terminal
/// gets its echo back, and a scratch directory is removed, before the signal takes effect.
///
/// A program has one active forwarder. A second one takes over until it ends, and passes the signals that it
/// delivers to the first.
package final class SignalForwarder {
    private let reading: CInt
    private let writing: CInt
    private var previous: [(CInt, sigaction)] = []
    // The descriptor of the forwarder that was active before this one.
    private let before: CInt
    // Whether the watching thread has reported all signals; `nil` when there is no thread.
    private var watching: Monitor<Bool>?

    /// The signals with which a user or a supervisor ends a program.
    package static let ending: [CInt] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
    /// `SIGHUP`.
    package static let hangUp: CInt = SIGHUP
    /// The signals that end or stop a program.
    package static let endingOrStopping: [CInt] = ending + [SIGTSTP, SIGTTIN, SIGTTOU]

    /// Returns whether `signal` is a further request to end after an earlier one. `SIGHUP` is not: the shell
    /// and the kernel both send it when a terminal goes away, and systemd sends it after `SIGTERM`.
    package static func insists(_ signal: CInt) -> Bool { signal != SIGHUP }

    /// Forwards `signals` from now on, except ignored ones (`nohup`).
    package init(_ signals: [CInt]) throws(SystemFailure) {
        var ends: [CInt] = [-1, -1]
        let made = ends.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.map { clinux_pipe($0) } ?? -1
        }
        guard made == 0 else { throw SystemFailure(Errno(rawValue: errno), "pipe2") }
        reading = ends[0]
        writing = ends[1]
        before = clinux_forward_signals_to(writing)
        for signal in signals {
            var action = sigaction()
            if clinux_forward_signal(signal, &action) == 0 { previous.append((signal, action)) }
        }
    }

    deinit { stop() }

    /// Restores the action of every signal. Signals that came before are handled: the watching thread has
    /// received them.
    package func stop() {
        guard !previous.isEmpty else { return }
        for (signal, action) in previous {
            var action = action
            sigaction(signal, &action, nil)
        }
        previous = []
        _ = clinux_forward_signals_to(before)
        clinux_wait_for_forwarding()
        close(writing)
        if let watching {
            watching.wait { $0 ? () : nil }
        } else {
            // A signal that was not read goes to the previous forwarder, or takes effect.
            var number: UInt8 = 0
            while read(reading, &number, 1) == 1 {
                if before >= 0 { _ = write(before, &number, 1) } else { Self.take(CInt(number)) }
            }
        }
        close(reading)
    }

    /// Unblocks `signals`, which the parent may have blocked, for this thread and the threads that it starts.
    package static func admit(_ signals: [CInt]) { for signal in signals { clinux_unblock_signal(signal) } }

    /// A descriptor that becomes readable when a signal came.
    package var descriptor: CInt { reading }

    /// Returns the first signal that came, if any.
    package func next() -> CInt? {
        guard !previous.isEmpty else { return nil }
        var number: UInt8 = 0
        return read(reading, &number, 1) == 1 ? CInt(number) : nil
    }

    /// Calls `tell` with every signal, on a thread of its own, until ``stop()``. No other code may then call
    /// `next()`. `tell` must not call ``stop()``, which waits for it. Returns false when no thread can be
    /// started: signals then have their usual effect again.
    package func watch(_ tell: @escaping @Sendable (CInt) -> Void) -> Bool {
        let thread = WorkerThread(name: "signals")
        // The thread's own copy: the original is closed by `stop`, and its number may then be reused.
        let descriptor = clinux_duplicate(reading, 10)
        guard thread.isRunning, descriptor >= 0 else {
            if descriptor >= 0 { close(descriptor) }
            stop()
            return false
        }
        let watching = Monitor(false)
        self.watching = watching
        thread.run {
            defer {
                close(descriptor)
                watching.announce { $0 = true }
            }
            while true {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                poll(&waiting, 1, -1)
                var number: UInt8 = 0
                let count = read(descriptor, &number, 1)
                // All writers are closed.
                if count == 0 { return }
                if count == 1 { tell(CInt(number)) }
            }
        }
        return true
    }

    /// Stops forwarding and lets `signal` have its effect. Returns when the program survived the signal: it
    /// was stopped and continued, or its own handler returned.
    package func deliver(_ signal: CInt) {
        stop()
        Self.take(signal)
    }

    /// Ends the program by the default action of `signal`. Where the system ignores that (the first process
    /// of a container), exits with the status that shells use for the signal.
    package static func endProgram(by signal: CInt) -> Never {
        clinux_default_signal(signal)
        take(signal)
        _exit(128 + signal)
    }

    /// Delivers `signal` to this thread and no other. Returns after the signal had its effect (`raise(3)`).
    private static func take(_ signal: CInt) {
        clinux_unblock_signal(signal)
        raise(signal)
    }
}
