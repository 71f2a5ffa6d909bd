internal import Glibc
internal import SystemPackage
internal import TokenVaultPlatform

/// A background reader of the lines that the user types on the terminal.
///
/// Reading pauses in the background, because a read there would stop the program.
package final class TerminalLines: Sendable {
    private let event: WakeEvent
    private let isOver = Monitor(false)
    private let cut: @Sendable () -> Void

    /// The longest line, in bytes. The terminal cuts a longer one (`termios(3)`, canonical mode).
    private static let maximumLength = 4_094

    /// Creates a reader of the terminal; `nil` when standard input is no terminal, or without a free descriptor. Calls
    /// `cut` on another thread for a line that the terminal cut, which is left out.
    package init?(cut: @escaping @Sendable () -> Void) {
        self.cut = cut
        guard StandardStream.input.isTerminal, let event = try? WakeEvent() else { return nil }
        self.event = event
    }

    deinit { stop() }

    /// Calls `take` on another thread with each line, without its end, until ``stop()`` or the end of the input. Empty
    /// lines are left out.
    package func read(_ take: @escaping @Sendable ([UInt8]) -> Void) {
        WorkerThread(name: "terminal").run { [event, isOver, cut] in
            var line: [UInt8] = []
            while !isOver.withLock({ $0 }) {
                guard Self.isInForeground else {
                    // No event reports the return to the foreground.
                    event.wait(atMost: .milliseconds(200))
                    continue
                }
                guard event.wait(for: STDIN_FILENO), !isOver.withLock({ $0 }), Self.isInForeground else {
                    continue
                }
                var byte: UInt8 = 0
                let count = Glibc.read(STDIN_FILENO, &byte, 1)
                if count < 0, errno == EINTR { continue }
                guard count == 1 else { return }
                if byte != UInt8(ascii: "\n") {
                    line.append(byte)
                } else {
                    if line.count > Self.maximumLength { cut() } else if !line.isEmpty { take(line) }
                    line = []
                }
                if line.count > Self.maximumLength + 1 { line.removeLast() }
            }
        }
    }

    /// Ends the reading.
    package func stop() {
        isOver.withLock { $0 = true }
        event.wake()
    }

    /// Whether this program may read the terminal (`tcgetpgrp(3)`). Without a controlling terminal, there is no
    /// background.
    private static var isInForeground: Bool {
        let group = tcgetpgrp(STDIN_FILENO)
        return group == -1 || group == getpgrp()
    }
}
