import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

/// A readable table of items.
struct ItemTable {
    private let rows: [[String]]
    /// The columns of texts that users choose, which are cut on a narrow terminal.
    private let flexible: [Int]
    private static let narrowest = 12

    init(_ items: [TokenMetadata], showsServices: Bool, now: Date = Date()) {
        var header = ["KEY", "POLICY", "MODIFIED", "EXPIRES", "LABEL"]
        if showsServices { header.insert("SERVICE", at: 0) }
        rows =
            [header]
            + items.map { item in
                var row = [
                    item.key.name, item.policy.rawValue, Timestamp.short(item.modified),
                    item.isExpired(at: now) ? "expired" : item.expires.map { Timestamp.short($0) } ?? "-",
                    item.label ?? "",
                ]
                if showsServices { row.insert(item.service, at: 0) }
                return row.map(PrintedName.screen)
            }
        flexible = showsServices ? [0, 1, 5] : [0, 4]
    }

    /// Prints the rows, each column as wide as its widest text, cut to a terminal of `columns`.
    func show(on output: Output, columns: Int?) {
        guard rows.count > 1 else { return }
        for line in lines(columns: columns) { output.line(line) }
    }

    func lines(columns: Int?) -> [String] {
        let widths = widths(within: columns)
        return rows.map { row in
            var line = ""
            for (text, width) in zip(row, widths) {
                line += DisplayWidth.padded(DisplayWidth.cut(text, to: width), to: width + 2)
            }
            while line.last == " " { line.removeLast() }
            if let columns { line = DisplayWidth.cut(line, to: columns) }
            return line
        }
    }

    /// Returns the width of each column: that of its widest text, or less when the columns do not fit.
    private func widths(within columns: Int?) -> [Int] {
        var widths = rows[0].indices.map { column in
            rows.map { DisplayWidth.columns(of: $0[column]) }.max() ?? 0
        }
        guard let columns else { return widths }
        while widths.reduce(0, +) + 2 * (widths.count - 1) > columns {
            let widest = flexible.max { widths[$0] < widths[$1] }
            guard let widest, widths[widest] > Self.narrowest else { break }
            widths[widest] -= 1
        }
        return widths
    }
}
