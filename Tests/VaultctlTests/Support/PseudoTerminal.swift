import Glibc
import Testing

/// A terminal with `vaultctl` on it and a script at the keyboard.
final class PseudoTerminal {
    private let keyboard: Int32
    private let process: pid_t
    private var ended: Int32?
    /// What has been shown since the last ``expect(_:)``.
    private(set) var shown = ""

    /// Starts the program in a session whose terminal this is, of that type and so many columns; standard streams too, but for
    /// those given.
    init(
        _ sandbox: Sandbox, program: String = Child.program, _ arguments: [String], output: Int32? = nil,
        type: String = "dumb", columns: UInt16 = 0
    ) throws {
        // Does what posix_openpt, unlockpt and ptsname do, which Swift's Glibc does not declare.
        keyboard = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        let (unlock, number): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
        var zero: Int32 = 0
        var index: Int32 = 0
        try #require(
            keyboard >= 0 && ioctl(keyboard, unlock, &zero) == 0 && ioctl(keyboard, number, &index) == 0)
        var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        try #require(columns == 0 || ioctl(keyboard, UInt(TIOCSWINSZ), &size) == 0)
        let name = "/dev/pts/\(index)"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, 0, 2)
        posix_spawn_file_actions_adddup2(&actions, output ?? 0, 1)
        var environment = sandbox.environment
        environment["VAULTCTL_KEY_FILE"] = nil
        environment["TERM"] = type
        process = try Child.spawn(
            program, arguments.map { Array($0.utf8) }, environment, &actions, newSession: true)
    }

    deinit {
        if ended == nil {
            kill(process, SIGKILL)
            _ = try? Child.wait(for: process)
        }
        close(keyboard)
    }

    /// Waits until `text` is shown; returns what came before it.
    @discardableResult
    func expect(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
        while true {
            if let range = shown.firstRange(of: text) {
                let before = String(shown[..<range.lowerBound])
                shown = String(shown[range.upperBound...])
                return before
            }
            let more = read()
            let hasMore = !more.isEmpty
            try #require(hasMore, "\(text) never came, but: \(shown)", sourceLocation: sourceLocation)
            shown += more
        }
    }

    /// Types `text`; Control-C is `\u{3}`, Enter `\r`.
    func type(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(keyboard, $0.baseAddress, $0.count) }
            try #require(count > 0)
            bytes = bytes.dropFirst(count)
        }
    }

    /// Types the pieces of a paste, `milliseconds` apart, as a slow connection delivers them.
    func paste(_ pieces: [String], every milliseconds: Int32) throws {
        for piece in pieces {
            try type(piece)
            poll(nil, 0, milliseconds)
        }
    }

    /// Sends a signal as another process would.
    func send(_ signal: Int32) { kill(process, signal) }

    /// Whether the terminal shows what is typed.
    var echoes: Bool {
        var settings = termios()
        return tcgetattr(keyboard, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
            && settings.c_lflag & tcflag_t(ICANON) != 0
    }

    /// Reads to the end; the status the program ended with.
    func end() throws -> Int32 {
        while true {
            let more = read()
            if more.isEmpty { break }
            shown += more
        }
        let status = try Child.wait(for: process)
        ended = status
        return status
    }

    /// What is shown next; empty when the program has closed the terminal.
    private func read() -> String {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            // Without output for this long, the test fails instead of hanging.
            var waiting = pollfd(fd: keyboard, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 60_000) != 0 else {
                shown += "[nothing for a minute]"
                kill(process, SIGKILL)
                return ""
            }
            let count = Glibc.read(keyboard, &buffer, buffer.count)
            // Removes the carriage returns that the terminal adds: a newline after one is a single Character
            // in Swift.
            if count > 0 {
                let bytes = buffer.prefix(count).filter { $0 != UInt8(ascii: "\r") }
                if bytes.isEmpty { continue }
                return String(decoding: bytes, as: UTF8.self)
            }
            if count == 0 || errno != EINTR { return "" }
        }
    }
}
