internal import CLinux
internal import Glibc
internal import SystemPackage

/// Turns signals that would end or stop the program into something to read, for as long as it lives: so
/// that a terminal gets its echo back and a scratch directory is removed before the signal takes effect.
///
/// One at a time in a program; a second one takes over until it ends, and a signal that it delivers is the first one's then.
package final class SignalForwarder {
    private let reading: CInt
    private let writing: CInt
    private var previous: [(CInt, sigaction)] = []
    // Where signals went that one before this one waits for.
    private let before: CInt
    // Whether the thread that takes them has told of all; `nil` when there is none.
    private var watching: Monitor<Bool>?

    /// The signals that a person or a supervisor ends a program with.
    package static let ending: [CInt] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
    /// `SIGHUP`.
    package static let hangUp: CInt = SIGHUP
    /// Those, and the ones that stop it.
    package static let endingOrStopping: [CInt] = ending + [SIGTSTP, SIGTTIN, SIGTTOU]

    /// Whether `signal` asks for more than one that came before: not `SIGHUP`, which comes from both the shell and the kernel when a
    /// terminal goes, and from systemd behind `SIGTERM`.
    package static func insists(_ signal: CInt) -> Bool { signal != SIGHUP }

    /// Forwards `signals` from now on, but for those that are ignored (`nohup`).
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

    /// Gives every signal the action it had. What came until then is taken: whoever watches has been told of it.
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
            // One that nobody has asked for is for the one before, or has its effect.
            var number: UInt8 = 0
            while read(reading, &number, 1) == 1 {
                if before >= 0 { _ = write(before, &number, 1) } else { Self.take(CInt(number)) }
            }
        }
        close(reading)
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

    /// Has `tell` called with every signal that comes, on a thread of its own, until ``stop()``; nobody else is to ask for
    /// the next one then. It does not call ``stop()``, which waits for it. False where there is no thread to be had: signals
    /// have their effect again.
    package func watch(_ tell: @escaping @Sendable (CInt) -> Void) -> Bool {
        let thread = WorkerThread(name: "signals")
        // The thread's own: this one's is closed when it ends, and its number may be another's by then.
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
                // Nobody can write any more.
                if count == 0 { return }
                if count == 1 { tell(CInt(number)) }
            }
        }
        return true
    }

    /// Stops forwarding and lets `signal` have its effect. Returns when the program survived it: it was
    /// stopped and continued, or its own handler returned.
    package func deliver(_ signal: CInt) {
        stop()
        Self.take(signal)
    }

    /// Ends the program as `signal` does where nobody forwards it, or, where the system lets it go on (the first process of a
    /// container), with the exit status that shells have for that.
    package static func endProgram(by signal: CInt) -> Never {
        clinux_default_signal(signal)
        take(signal)
        _exit(128 + signal)
    }

    /// Has this thread take `signal`, and not whichever: it does not go on before that has had its effect (`raise(3)`).
    private static func take(_ signal: CInt) {
        clinux_unblock_signal(signal)
        raise(signal)
    }
}
