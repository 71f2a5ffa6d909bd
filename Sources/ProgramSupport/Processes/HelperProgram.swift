internal import CLinux
internal import Glibc
package import SystemPackage
package import TokenVaultPlatform

/// A program that is started to get a secret from the user or a server. Its output is read into memory that
/// the caller wipes. It has a session of its own, so that it can be killed with everything that it started.
/// It ends when the caller stops waiting.
package final class HelperProgram {
    private let process: pid_t
    private var output: CInt
    // A socket: writing to a program that is gone raises no signal.
    private var input: CInt
    // Signals come here, unless another component handles them and gives notice.
    private let signals: SignalForwarder?
    private let parting: ShutdownPolicy?
    // Whether the notice has not been handled yet.
    private var isExpectingNotice: Bool
    // The time until which the helper may still answer after the notice.
    private var partingEnd: Deadline?
    private var isWoken = false
    private var isOver = false

    /// The fate of a helper when the program that waits for its answer is about to end. Another component
    /// handles the signals then.
    package struct ShutdownPolicy: Sendable {
        /// The notice of the end, given before or later.
        let notice: EndingNotice
        /// The time that the helper gets for an answer after the notice.
        let limit: Duration
        /// Whether the helper is informed of the notice, by the end of its input.
        let isTold: Bool
        /// Whether the helper is started even after the notice, because its work is part of ending. The
        /// earlier notice then has no effect on it.
        let comesAfterwards: Bool

        package init(
            _ notice: EndingNotice, within limit: Duration, isTold: Bool = true, comesAfterwards: Bool = false
        ) {
            self.notice = notice
            self.limit = limit
            self.isTold = isTold
            self.comesAfterwards = comesAfterwards
        }
    }

    /// Returns the path of the program `name`. A name with a slash is the path. Otherwise returns the first
    /// executable of that name in the directories of `PATH`, or `nil`.
    package static func find(_ name: String) -> FilePath? {
        guard !name.contains("/") else { return FilePath(name) }
        let path = ProcessFacts.environment("PATH") ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { FilePath(String($0)).appending(name) }
            .first { $0.isAbsolute && access($0.string, X_OK) == 0 }
    }

    /// Starts `program`. Its environment is exactly `environment`. With `isSpokenTo` its standard input is a
    /// socket for writing to it, else empty. With `parting` signals are not handled here. Throws system
    /// errors, and `EINTR` when no program is started any longer.
    package init(
        _ program: FilePath, _ arguments: [String], environment: [String], isSpokenTo: Bool,
        parting: ShutdownPolicy? = nil
    ) throws(SystemFailure) {
        self.parting = parting
        var said: [CInt] = [-1, -1]
        var told: [CInt] = [-1, -1]
        signals = parting == nil ? try SignalForwarder(SignalForwarder.ending) : nil
        _ = try retrying("pipe2") { clinux_pipe(&said) }
        defer { close(said[1]) }
        do throws(SystemFailure) {
            if isSpokenTo { _ = try retrying("socketpair") { clinux_socket_pair(&told) } }
            defer { if told[1] >= 0 { close(told[1]) } }
            // The helper's end of the pipe is blocking, as programs expect.
            _ = fcntl(said[1], F_SETFL, 0)
            let start = { () throws(SystemFailure) in
                try ProgramStart.start(program, arguments, environment: environment, closingFrom: 3) {
                    if told[1] >= 0 {
                        posix_spawn_file_actions_adddup2($0, told[1], 0)
                    } else {
                        posix_spawn_file_actions_addopen($0, 0, "/dev/null", O_RDONLY, 0)
                    }
                    posix_spawn_file_actions_adddup2($0, said[1], 1)
                }
            }
            if let parting {
                let begun = try parting.notice.begin(evenAfterwards: parting.comesAfterwards, start)
                process = begun.process
                isExpectingNotice = !begun.hasCome
            } else {
                process = try start()
                isExpectingNotice = false
            }
        } catch {
            close(said[0])
            if told[0] >= 0 { close(told[0]) }
            throw error
        }
        output = said[0]
        input = told[0]
    }

    deinit {
        end()
        // A signal may have come while nothing was waiting.
        if let signals, let signal = signals.next() { signals.deliver(signal) }
        closeOutput()
    }

    /// A second writer to the helper's input, for use on any thread.
    package final class Sender: Sendable {
        private let copy: CInt

        fileprivate init(_ input: CInt) throws(SystemFailure) {
            copy = try retrying("fcntl(F_DUPFD_CLOEXEC)") { clinux_duplicate(input, 10) }
        }

        deinit { close(copy) }

        /// Writes `line` and a newline. Waits while the helper's buffer is full. The line is dropped once the
        /// helper reads no further.
        package func send(_ line: [UInt8]) {
            var rest = (line + [UInt8(ascii: "\n")])[...]
            while !rest.isEmpty {
                let sent = rest.withUnsafeBytes {
                    Glibc.send(copy, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
                }
                if sent > 0 {
                    rest = rest.dropFirst(sent)
                } else if errno != EINTR {
                    return
                }
            }
        }
    }

    /// Returns a writer for other threads. Throws `EMFILE` without free descriptors, and `EBADF` after the
    /// helper's end.
    package func sender() throws(SystemFailure) -> Sender { try Sender(input) }

    /// Writes `text`. Throws `EPIPE` when the helper reads no further, `ETIMEDOUT` when `deadline` passes
    /// first.
    package func write(_ text: String, deadline: Deadline?) throws(SystemFailure) {
        try write(Array(text.utf8), deadline: deadline)
    }

    /// Writes bytes, which the caller wipes, as ``write(_:deadline:)``.
    ///
    /// A signal that would end this program kills the helper first, even while it reads nothing. Throws
    /// `EINTR` then.
    package func write(_ bytes: [UInt8], deadline: Deadline?) throws(SystemFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
            let sent = rest.withUnsafeBytes { send(input, $0.baseAddress, $0.count, flags) }
            if sent > 0 {
                rest = rest.dropFirst(sent)
            } else if errno == EAGAIN {
                _ = try wait(forOneOf: [input], until: POLLOUT, deadline)
            } else if errno != EINTR {
                throw SystemFailure(Errno(rawValue: errno), "send")
            }
        }
    }

    /// Returns the next line, without its end. At the end of the output, returns the rest, then `nil`. Throws
    /// `EFBIG` above `limit` bytes, `ETIMEDOUT` when `deadline` passes. The caller wipes the line.
    ///
    /// With `evenIfLate` available output is read even after `deadline`. This program may have been stopped
    /// at that time, and the output may be impossible to get again. After such a stop this program waits a
    /// little longer. A stopped helper is continued and gets some time to answer. Callers that read line
    /// after line in this way need a time limit of their own.
    ///
    /// A signal that would end this program kills the helper first, unless its policy lets it finish. Throws
    /// `EINTR` then.
    package func readLine(
        limit: Int, deadline: Deadline?, evenIfLate: Bool = false
    ) throws(SystemFailure) -> [UInt8]? {
        var deadline = deadline
        var failure: SystemFailure?
        var isEnd = false
        // One buffer of fixed size: growing would leave copies of a secret behind.
        var bytes = [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, count in
            while count <= limit {
                do throws(SystemFailure) {
                    if evenIfLate {
                        try waitEvenIfLate(&deadline)
                    } else {
                        _ = try wait(forOneOf: [output], deadline, mayPart: true)
                    }
                } catch {
                    failure = error
                    return
                }
                let result = read(output, buffer.baseAddress.map { $0 + count }, 1)
                if result == 0 {
                    isEnd = true
                    return
                }
                if result > 0 {
                    if buffer[count] == UInt8(ascii: "\n") { return }
                    count += 1
                } else if errno != EINTR && errno != EAGAIN {
                    failure = SystemFailure(Errno(rawValue: errno), "read")
                    return
                }
            }
            failure = SystemFailure(.fileTooLarge, "read")
        }
        if let failure {
            SmallFile.wipe(&bytes)
            throw failure
        }
        return isEnd && bytes.isEmpty ? nil : bytes
    }

    /// Waits for the helper to exit, and kills everything that it started. Returns the exit status, or 128
    /// plus the signal number when a signal ended it. Further output is discarded. A helper that runs for
    /// another five seconds is killed. Throws `ETIMEDOUT` when `deadline` passes first; the helper is then
    /// killed.
    package func finish(deadline: Deadline?) throws(SystemFailure) -> Int32 {
        closeInput()
        let descriptor = clinux_process_descriptor(process)
        if descriptor >= 0 {
            defer { close(descriptor) }
            let grace = Deadline(after: min(Self.grace, deadline?.remaining ?? Self.grace))
            do throws(SystemFailure) {
                while try wait(forOneOf: [descriptor, output], grace) != descriptor { discard() }
            } catch {
                end()
                guard error.errno == .timedOut, !(deadline?.hasPassed ?? false) else { throw error }
                return 128 + SIGKILL
            }
            // The process group's number is not reused until the helper is reaped.
            kill(-process, SIGKILL)
        }
        return reap()
    }

    /// Discards output of the helper.
    private func discard() {
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 16) { buffer in
            let count = read(output, buffer.baseAddress, buffer.count)
            if let start = buffer.baseAddress, count > 0 { explicit_bzero(start, count) }
            if count == 0 { closeOutput() }
        }
    }

    /// The time that the helper has to exit.
    private static let grace: Duration = .seconds(5)

    /// Kills the helper and everything that it started.
    package func end() {
        guard !isOver else { return }
        closeInput()
        kill(-process, SIGKILL)
        _ = reap()
    }

    private func closeInput() {
        // A sender may have a copy of the descriptor.
        if input >= 0 {
            shutdown(input, CInt(SHUT_WR))
            close(input)
        }
        input = -1
    }

    private func closeOutput() {
        if output >= 0 { close(output) }
        output = -1
    }

    private func reap() -> Int32 {
        isOver = true
        return parting?.notice.reap(process) ?? ProgramStart.wait(for: process)
    }

    /// Whether the helper is stopped, or was (`waitid`).
    private var wasStopped: Bool {
        var change = siginfo_t()
        let wanted = WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT
        return waitid(P_PID, id_t(process), &change, wanted) == 0 && change.si_signo == SIGCHLD
    }

    /// Waits until output can be read. Available output is read at any time. If this program or the helper
    /// was stopped while `deadline` passed, there is a new deadline.
    private func waitEvenIfLate(_ deadline: inout Deadline?) throws(SystemFailure) {
        let wasOver = deadline?.hasPassed ?? false
        do throws(SystemFailure) {
            _ = try wait(forOneOf: [output], deadline, evenIfLate: true, mayPart: true)
        } catch {
            guard error.errno == .timedOut, partingEnd == nil, let lateness = deadline?.lateness else {
                throw error
            }
            if !isWoken, wasStopped {
                isWoken = true
                kill(-process, SIGCONT)
                // The helper handles its pending input, or finds its own time limit passed. It may wait a
                // little itself before it exits.
                deadline = Deadline(after: .seconds(3))
            } else if !wasOver, lateness > .seconds(1) {
                deadline = Deadline(after: .seconds(2))
            } else {
                throw error
            }
            _ = try wait(forOneOf: [output], deadline, evenIfLate: true, mayPart: true)
        }
    }

    /// Handles a signal: kills the helper, or lets it finish. Throws `EINTR` when it was killed.
    private func heedSignal(mayPart: Bool) throws(SystemFailure) {
        if let signals, let signal = signals.next() {
            end()
            signals.deliver(signal)
            throw SystemFailure(.interrupted, "poll")
        }
        guard isExpectingNotice, let parting, parting.notice.hasCome else { return }
        isExpectingNotice = false
        guard mayPart else {
            end()
            throw SystemFailure(.interrupted, "poll")
        }
        partingEnd = Deadline(after: parting.limit)
        if parting.isTold { closeInput() }
        // A stopped helper would not notice the end of its input.
        kill(-process, SIGCONT)
    }

    /// The descriptor that reports a signal; -1 when there is none to wait for.
    private var signalDescriptor: CInt {
        signals?.descriptor ?? (isExpectingNotice ? parting?.notice.descriptor : nil) ?? -1
    }

    /// Waits until one of `descriptors` can be read, or written for `POLLOUT`. Returns the first that can.
    private func wait(
        forOneOf descriptors: [CInt], until event: CInt = POLLIN, _ deadline: Deadline?,
        evenIfLate: Bool = false, mayPart: Bool = false
    ) throws(SystemFailure) -> CInt {
        while true {
            // After a signal the earlier of both limits counts.
            let deadline =
                partingEnd.map { end in
                    deadline.map { $0.remaining < end.remaining ? $0 : end } ?? end
                } ?? deadline
            var waiting = [pollfd(fd: signalDescriptor, events: Int16(POLLIN), revents: 0)]
            waiting += descriptors.map { pollfd(fd: $0, events: Int16(event), revents: 0) }
            poll(&waiting, nfds_t(waiting.count), InputSource.milliseconds(until: deadline))
            if waiting[0].revents != 0 {
                try heedSignal(mayPart: mayPart)
                continue
            }
            let ready = waiting.dropFirst().first { $0.revents != 0 }
            if evenIfLate, let ready { return ready.fd }
            // Checked here too, for a helper that writes without end.
            if deadline?.hasPassed ?? false { throw SystemFailure(.timedOut, "poll") }
            if let ready { return ready.fd }
        }
    }
}
