internal import Glibc
internal import SystemPackage
internal import TokenVaultPlatform

/// Reads the lines that the user types or pastes on standard input, while the program waits for something else.
///
/// Nothing is read while the program is in the background, where a read would stop it.
package final class TerminalLines: Sendable {
    private let event: WakeEvent
    private let isOver = Monitor(false)

    /// Creates a reader of the terminal; `nil` when standard input is no terminal.
    package init?() {
        guard StandardStream.input.isTerminal, let event = try? WakeEvent() else { return nil }
        self.event = event
    }

    deinit { stop() }

    /// Calls `take` with each line, without its end, until ``stop()``. Empty lines are left out.
    package func read(_ take: @escaping @Sendable ([UInt8]) -> Void) {
        WorkerThread(name: "terminal").run { [event, isOver] in
            var line: [UInt8] = []
            while !isOver.withLock({ $0 }) {
                guard Self.isInForeground else {
                    event.wait(atMost: .milliseconds(200))
                    continue
                }
                guard event.wait(for: STDIN_FILENO), !isOver.withLock({ $0 }), Self.isInForeground else {
                    continue
                }
                guard let byte = Self.nextByte() else { return }
                if byte != UInt8(ascii: "\n") {
                    line.append(byte)
                } else {
                    if !line.isEmpty { take(line) }
                    line = []
                }
            }
        }
    }

    /// Ends the reading.
    package func stop() {
        isOver.withLock { $0 = true }
        event.wake()
    }

    /// Whether this program may read the terminal (`tcgetpgrp(3)`). A terminal that does not control this program
    /// has no background.
    private static var isInForeground: Bool {
        let group = tcgetpgrp(STDIN_FILENO)
        return group == -1 || group == getpgrp()
    }

    /// Returns the next byte; `nil` at the end of the input.
    private static func nextByte() -> UInt8? {
        var byte: UInt8 = 0
        return Glibc.read(STDIN_FILENO, &byte, 1) == 1 ? byte : nil
    }
}
