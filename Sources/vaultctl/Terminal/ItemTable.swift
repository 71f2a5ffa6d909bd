import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Items as a person likes to see them.
struct ItemTable {
    private let rows: [[String]]

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
                return row
            }
    }

    /// Prints the rows, each column as wide as its widest text, cut to a terminal of `columns`.
    func show(on output: Output, columns: Int?) {
        guard rows.count > 1 else { return }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        for row in rows {
            var line = ""
            for (text, width) in zip(row, widths) {
                line += text + String(repeating: " ", count: width - text.count + 2)
            }
            while line.last == " " { line.removeLast() }
            if let columns, line.count > columns { line = line.prefix(columns - 1) + "…" }
            output.line(line)
        }
    }
}
