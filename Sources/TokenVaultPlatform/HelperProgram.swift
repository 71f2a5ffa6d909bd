internal import CLinux
internal import Glibc
package import SystemPackage

/// A program that is started to ask a person or a server for a secret: what it says is read into memory that the caller
/// wipes. It has a session of its own, so that it can be ended with what it started, and ends with this one's waiting.
package final class HelperProgram {
    private let process: pid_t
    private var output: CInt
    // A socket: writing to one who has gone raises no signal.
    private var input: CInt
    // Signals come here, unless somebody else takes them and gives notice.
    private let signals: SignalForwarder?
    private let parting: ShutdownPolicy?
    // Whether the notice is still to have its effect.
    private var isExpectingNotice: Bool
    // Until when it may say something after that.
    private var partingEnd: Deadline?
    private var isWoken = false
    private var isOver = false

    /// What becomes of a program when the one that waits for its answer is to end. Somebody else takes the signals then.
    package struct ShutdownPolicy: Sendable {
        /// Says when, whether that was before or is later.
        let notice: EndingNotice
        /// For how long it may still answer then.
        let limit: Duration
        /// Whether it knows of that, by the end of its input.
        let isTold: Bool
        /// Whether it is started also when that was before: it has to do with the end, which is nothing to it then.
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

    /// Where `name` is: itself if there is a slash in it, else what the directories of `PATH` have of that name, and may be
    /// run. `nil` when they have none.
    package static func find(_ name: String) -> FilePath? {
        guard !name.contains("/") else { return FilePath(name) }
        let path = ProcessFacts.environment("PATH") ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { FilePath(String($0)).appending(name) }
            .first { $0.isAbsolute && access($0.string, X_OK) == 0 }
    }

    /// Starts `program`, whose environment is `environment` and nothing else. With `isSpokenTo` it can be written to; else its
    /// standard input is empty. With `parting` signals are not taken here. Throws what the system failed with, and `EINTR` when
    /// it is not to be started any more.
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
            // The end that it has waits, as programs expect.
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
        // One that came when nothing was waited for any more.
        if let signals, let signal = signals.next() { signals.deliver(signal) }
        closeOutput()
    }

    /// Writes `text`. Throws `EPIPE` when the program reads no more, `ETIMEDOUT` when `deadline` passes before it has.
    package func write(_ text: String, deadline: Deadline?) throws(SystemFailure) {
        try write(Array(text.utf8), deadline: deadline)
    }

    /// As ``write(_:deadline:)``, bytes that the caller wipes.
    ///
    /// A signal that would end this program ends the other one first, also while that reads nothing; `EINTR` is thrown then.
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

    /// The next line, without its end; what is left when there is none; `nil` when there is nothing any more. Throws `EFBIG`
    /// above `limit` bytes, `ETIMEDOUT` when `deadline` passes. The caller wipes it.
    ///
    /// With `evenIfLate` what is there already is read also after `deadline`: this program may have been stopped while it
    /// passed, and what was said meanwhile may be said only once. A program that was stopped then waits a moment more. The other
    /// one, where that was stopped, is woken and has a moment for what it has to say. Whoever reads line after line that way has
    /// a bound of its own.
    ///
    /// A signal that would end this program ends the other one first, unless that may part; `EINTR` is thrown then.
    package func readLine(
        limit: Int, deadline: Deadline?, evenIfLate: Bool = false
    ) throws(SystemFailure) -> [UInt8]? {
        var deadline = deadline
        var failure: SystemFailure?
        var isEnd = false
        // One buffer that never grows: growing would leave copies of a secret behind.
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

    /// Waits for its end, and ends what it started: the exit status, or 128 and the signal's number when a signal ended it.
    /// What else it says is thrown away. One that has not ended after five seconds is ended. Throws `ETIMEDOUT` when
    /// `deadline` passes first; it is ended then.
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
            // Its number is its group's until it is reaped.
            kill(-process, SIGKILL)
        }
        return reap()
    }

    /// Throws away what it said.
    private func discard() {
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 16) { buffer in
            let count = read(output, buffer.baseAddress, buffer.count)
            if let start = buffer.baseAddress, count > 0 { explicit_bzero(start, count) }
            if count == 0 { closeOutput() }
        }
    }

    /// How long it may take to end.
    private static let grace: Duration = .seconds(5)

    /// Ends it and what it started.
    package func end() {
        guard !isOver else { return }
        closeInput()
        kill(-process, SIGKILL)
        _ = reap()
    }

    private func closeInput() {
        if input >= 0 { close(input) }
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

    /// Whether it is stopped, or was (`waitid`).
    private var wasStopped: Bool {
        var change = siginfo_t()
        let wanted = WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT
        return waitid(P_PID, id_t(process), &change, wanted) == 0 && change.si_signo == SIGCHLD
    }

    /// Waits until what it says can be read. What can be is, whatever time it is; one who was stopped while `deadline` passed
    /// gets another, whether that is this program or the other one.
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
                // It has what waited for it, or finds that its own time is over: it waits a moment more itself.
                deadline = Deadline(after: .seconds(3))
            } else if !wasOver, lateness > .seconds(1) {
                deadline = Deadline(after: .seconds(2))
            } else {
                throw error
            }
            _ = try wait(forOneOf: [output], deadline, evenIfLate: true, mayPart: true)
        }
    }

    /// Ends it, or has it come to an end, since a signal came. Throws `EINTR` when it has ended.
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
        // One that is stopped would not know.
        kill(-process, SIGCONT)
    }

    /// What tells of a signal; -1 when nothing does any more.
    private var signalDescriptor: CInt {
        signals?.descriptor ?? (isExpectingNotice ? parting?.notice.descriptor : nil) ?? -1
    }

    /// Waits until one of `descriptors` can be read, or else written: the first of those that can.
    private func wait(
        forOneOf descriptors: [CInt], until event: CInt = POLLIN, _ deadline: Deadline?,
        evenIfLate: Bool = false, mayPart: Bool = false
    ) throws(SystemFailure) -> CInt {
        while true {
            // After a signal it is that signal's time, or what is left of its own.
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
            // Also of a program that writes without end.
            if deadline?.hasPassed ?? false { throw SystemFailure(.timedOut, "poll") }
            if let ready { return ready.fd }
        }
    }
}
