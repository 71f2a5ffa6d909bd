internal import Glibc
internal import SystemPackage
internal import TokenVaultPlatform

/// A background reader of the lines that the user types on the terminal.
///
/// Reading pauses in the background, because a read there would stop the program.
package final class TerminalLines: Sendable {
    private let event: WakeEvent
    private let isOver = Monitor(false)

    /// The longest line, in bytes. A longer one is left out.
    private static let maximumLength = 16_000

    /// Creates a reader of the terminal; `nil` when standard input is no terminal, or without a free descriptor.
    package init?() {
        guard StandardStream.input.isTerminal, let event = try? WakeEvent() else { return nil }
        self.event = event
    }

    deinit { stop() }

    /// Calls `take` on another thread with each line, without its end, until ``stop()`` or the end of the input. Empty
    /// lines are left out.
    package func read(_ take: @escaping @Sendable ([UInt8]) -> Void) {
        WorkerThread(name: "terminal").run { [event, isOver] in
            var line: [UInt8] = []
            while !isOver.withLock({ $0 }) {
                guard Self.isInForeground else {
                    // No event tells of the return to the foreground.
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
                    if (1...Self.maximumLength).contains(line.count) { take(line) }
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
