internal import Glibc
internal import SystemPackage
package import TokenVaultPlatform

/// The user's terminal, independent of the standard streams: `/dev/tty`.
package final class Terminal {
    private let descriptor: CInt

    /// Opens the controlling terminal; `nil` when the process has none.
    package init?() {
        let opened = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard opened >= 0 else { return nil }
        descriptor = opened
    }

    deinit { close(descriptor) }

    /// The result of a prompt.
    package enum Answer {
        /// The typed bytes, without the end of line. The caller wipes them.
        case bytes([UInt8])
        /// Control-D on an empty line, or the terminal went away.
        case cancelled
        /// More than one line came at once, as from a paste. Everything was discarded.
        case severalLines
    }

    /// Writes `text`.
    package func show(_ text: String) {
        var text = text
        text.withUTF8 { _ = StandardStream.write(UnsafeRawBufferPointer($0), to: descriptor) }
    }

    /// Writes bytes.
    package func show(_ bytes: RawSpan) {
        bytes.withUnsafeBytes { _ = StandardStream.write($0, to: descriptor) }
    }

    /// Prompts for a line without showing it. Backspace, Control-U and Control-D work as usual. Unlike the
    /// terminal's own line editing, this accepts lines longer than 4,095 bytes.
    ///
    /// A paste of several lines is read to its end and discarded, so that the shell receives nothing of it.
    /// The terminal marks pastes (`ESC [ ? 2004 h`) while the prompt is open, unless its type is unknown or
    /// `dumb`.
    ///
    /// The echo is restored before SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN and SIGTTOU take
    /// effect. When the program is continued, the prompt is shown again. Throws `EFBIG` above `limit` bytes,
    /// `ETIMEDOUT` when `deadline` passes.
    ///
    /// After an answer the echo stays off until `silence` ends. A `silence` from an earlier prompt is taken
    /// over.
    package func askHidden(
        _ prompt: String, limit: Int, deadline: Deadline?, silence: inout TerminalSilence?
    ) throws(SystemFailure) -> Answer {
        while true {
            let former = silence?.handOver()
            silence = nil
            let signals: SignalForwarder
            if let former {
                signals = former.signals
            } else {
                signals = try SignalForwarder(SignalForwarder.endingOrStopping)
            }
            var settings = termios()
            if let former {
                settings = former.usual
            } else if tcgetattr(descriptor, &settings) != 0 {
                throw SystemFailure(Errno(rawValue: errno), "tcgetattr")
            }
            let usual = settings
            settings.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | IEXTEN)
            withUnsafeMutableBytes(of: &settings.c_cc) { characters in
                characters[Int(VMIN)] = 1
                characters[Int(VTIME)] = 0
            }
            guard tcsetattr(descriptor, TCSAFLUSH, &settings) == 0 else {
                throw SystemFailure(Errno(rawValue: errno), "tcsetattr")
            }
            let marksPastes = Self.canMarkPastes
            show((marksPastes ? "\u{1b}[?2004h" : "") + prompt)
            let typed = readHidden(signals, limit: limit, deadline: deadline)
            if marksPastes { show("\u{1b}[?2004l") }
            if case .success(.line(.bytes)) = typed {
                silence = TerminalSilence(descriptor, usual: usual, signals)
            }
            if silence == nil {
                var restored = usual
                tcsetattr(descriptor, TCSAFLUSH, &restored)
            }
            show("\n")
            switch typed {
            case .success(.line(let answer)): return answer
            case .success(.signal(let signal)): signals.deliver(signal)
            case .failure(let failure): throw failure
            }
        }
    }

    /// Prompts for a line with echo.
    package func ask(_ prompt: String, deadline: Deadline?) throws(SystemFailure) -> String? {
        show(prompt)
        var bytes: [UInt8] = []
        while bytes.count < 1_024 {
            if let failure = InputSource.wait(for: descriptor, deadline) { throw failure }
            var byte: UInt8 = 0
            let result = read(descriptor, &byte, 1)
            if result == 0 { return nil }
            if result < 0 {
                if errno == EINTR || errno == EAGAIN { continue }
                throw SystemFailure(Errno(rawValue: errno), "read")
            }
            if byte == UInt8(ascii: "\n") { break }
            bytes.append(byte)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Whether the terminal's type understands control sequences.
    private static var canMarkPastes: Bool {
        guard case .text(let type) = ProgramContext.variable("TERM") else { return false }
        return type != "dumb" && type != "unknown"
    }

    private enum Typed {
        case line(Answer)
        case signal(CInt)
    }

    private func readHidden(
        _ signals: SignalForwarder, limit: Int, deadline: Deadline?
    ) -> Result<Typed, SystemFailure> {
        var line = HiddenLine(limit: limit)
        defer { line.wipe() }
        var outcome: HiddenLine.Step?
        while true {
            var waiting = [
                pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            ]
            // After the line's end, a paste is over when no byte has come for a while.
            let left = InputSource.milliseconds(until: deadline)
            let quiet = outcome.map { _ in line.quietMilliseconds }
            let patience = quiet.map { left < 0 ? $0 : min($0, left) } ?? left
            let ready = poll(&waiting, 2, patience)
            if let signal = signals.next() { return .success(.signal(signal)) }
            if ready == 0 {
                if deadline?.hasPassed ?? false { return .failure(SystemFailure(.timedOut, "poll")) }
                if let outcome { return line.result(of: outcome).map { .line($0) } }
            }
            guard ready > 0, waiting[1].revents != 0 else { continue }
            var byte: UInt8 = 0
            let count = read(descriptor, &byte, 1)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return .success(.line(.cancelled)) }
            if outcome != nil {
                line.discard(byte)
            } else {
                let step = line.take(byte)
                if step != .more { outcome = step }
            }
        }
    }
}
