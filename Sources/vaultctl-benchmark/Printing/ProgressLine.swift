import TokenVaultPlatform

/// One line on standard error that tells how far the work has come, when that is a terminal; it is gone in the end.
final class ProgressLine {
    private let isShown: Bool
    private var shown = ""

    init() {
        isShown = StandardStream.error.isTerminal && ProgramContext.variable("TERM") != .text("dumb")
    }

    /// Shows `text` in place of what was shown.
    func show(_ text: String) {
        guard isShown, text != shown else { return }
        shown = text
        write("\r\u{1b}[K\(StandardStream.error.cut(text))")
    }

    /// Shows `what` and how much of it is done, 0 to 1.
    func show(_ what: String, _ share: Double) {
        guard isShown else { return }
        show("\(what) … \(Int(min(max(share, 0), 1) * 100)) %")
    }

    /// Removes the line.
    func clear() {
        guard !shown.isEmpty else { return }
        shown = ""
        write("\r\u{1b}[K")
    }

    private func write(_ text: String) { try? StandardStream.error.write(Array(text.utf8)) }
}
