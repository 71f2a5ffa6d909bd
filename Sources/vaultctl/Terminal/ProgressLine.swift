import TokenVaultPlatform

/// One line on standard error that tells how far long work has come, when that is a terminal; it is gone
/// when the work is done.
final class ProgressLine {
    private let isShown: Bool
    private var shown = ""
    private var next: Deadline?

    init() {
        var isDumb = false
        if case .text("dumb") = ProgramContext.variable("TERM") { isDumb = true }
        isShown = StandardStream.error.isTerminal && !isDumb
    }

    /// Shows `text` in place of what was shown.
    func show(_ text: String) {
        guard isShown, text != shown else { return }
        shown = text
        write("\r\u{1b}[K\(StandardStream.error.cut(text))")
    }

    /// Shows `what` and the percentage that `done` is of `total`, a few times a second.
    func show(_ what: String, _ done: Int, of total: Int) {
        guard isShown else { return }
        if let next, !next.hasPassed { return }
        next = Deadline(after: .milliseconds(100))
        show("\(what) \(done * 100 / max(total, 1)) %")
    }

    /// Removes the line.
    func clear() {
        guard !shown.isEmpty else { return }
        shown = ""
        write("\r\u{1b}[K")
    }

    /// Removes what another line may have shown.
    func erase() {
        if isShown { write("\r\u{1b}[K") }
    }

    private func write(_ text: String) {
        try? StandardStream.error.write(Array(text.utf8))
    }
}
