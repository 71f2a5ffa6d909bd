internal import TokenVaultPlatform

/// One line on standard error that shows the progress of long work, when standard error is a terminal.
///
/// The line is removed when the work is done.
package final class ProgressLine {
    private let isShown: Bool
    private var shown = ""
    private var next: Deadline?

    package init() {
        isShown = StandardStream.error.isTerminal && ProgramContext.variable("TERM") != .text("dumb")
    }

    /// Shows `text` in place of the previous text.
    package func show(_ text: String) {
        guard isShown, text != shown else { return }
        shown = text
        write("\r\u{1b}[K\(StandardStream.error.cut(text))")
    }

    /// Shows `what` and `done` as a percentage of `total`, at most every 100 ms.
    package func show(_ what: String, _ done: Int, of total: Int) {
        guard isShown else { return }
        if let next, !next.hasPassed { return }
        next = Deadline(after: .milliseconds(100))
        show("\(what) \(done * 100 / max(total, 1)) %")
    }

    /// Shows `what` and the finished share, 0 to 1, as a percentage.
    package func show(_ what: String, share: Double) {
        guard isShown else { return }
        show("\(what) … \(Int(min(max(share, 0), 1) * 100)) %")
    }

    /// Removes the line.
    package func clear() {
        guard !shown.isEmpty else { return }
        shown = ""
        write("\r\u{1b}[K")
    }

    /// Removes the text that another progress line may have shown.
    package func erase() {
        if isShown { write("\r\u{1b}[K") }
    }

    private func write(_ text: String) {
        try? StandardStream.error.write(Array(text.utf8))
    }
}
