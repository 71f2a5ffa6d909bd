internal import ProgramSupport
import TokenVaultPlatform

/// A readable table of the figures, each with its place on a scale.
struct Table {
    /// The width of the terminal, in columns.
    let columns: Int
    /// Whether parts of the table are bold and dim.
    let isStyled: Bool

    private static let figureWidths = [8, 8, 8, 8, 9]
    private static let nameWidth = 14 + 11
    // A space and a hundred million calls a second.
    private static let rateWidth = 12
    private static let textWidth = nameWidth + figureWidths.reduce(0, +) + rateWidth
    private static let gap = "  "

    /// Returns the whole text.
    func text(_ results: Results) -> String {
        var text = ""
        for valueSize in results.valueSizes {
            text += heading("Secrets of \(grouped(valueSize)) bytes; latencies in microseconds") + "\n"
            for operation in Operation.allCases {
                text += "\n" + block(results, valueSize, operation)
                if let note = results.note(on: operation) { text += wrapped(note) }
            }
            text += "\n"
        }
        if hasCharts { text += wrapped("In the charts: ● median, ━ to p90, ─ to p99, · to the longest.") }
        text += wrapped("– stands for a percentile of too few calls.")
        for (backend, reason) in results.leftOut { text += wrapped("\(backend) was left out: \(reason).") }
        return text
    }

    /// Whether there is room for charts, beside the figures or below them.
    private var hasCharts: Bool { columns >= Self.nameWidth + Self.gap.count + Chart.leastWidth }

    private struct Row {
        var name: String
        var items: String
        let latencies: Latencies
        let isLimit: Bool
    }

    /// Returns the figures of one operation. The chart is beside the figures, or below where the terminal is
    /// too narrow.
    private func block(_ results: Results, _ valueSize: Int, _ operation: Operation) -> String {
        let rows = rows(results, valueSize, operation)
        let isBeside = columns >= Self.textWidth + Self.gap.count + Chart.leastWidth
        let chart = Chart(
            all: rows.map(\.latencies),
            width: columns - Self.gap.count - (isBeside ? Self.textWidth : Self.nameWidth))
        var head = operation.rawValue.left(14) + "items".right(11)
        for (name, width) in zip(["p50", "p90", "p99", "p99.9", "max"], Self.figureWidths) {
            head += name.right(width)
        }
        head += "a second".right(Self.rateWidth) + (isBeside ? Self.gap + chart.scale : "")
        var text = heading(head) + "\n"
        for row in rows {
            var line = row.name.left(14) + row.items.right(11) + figures(row.latencies)
            if isBeside { line += Self.gap + chart.bar(row.latencies) }
            text += styled(line, row)
        }
        guard !isBeside, !chart.isEmpty else { return text }
        text += heading(String(repeating: " ", count: Self.nameWidth) + Self.gap + chart.scale) + "\n"
        for row in rows {
            text += styled(row.name.left(14) + row.items.right(11) + Self.gap + chart.bar(row.latencies), row)
        }
        return text
    }

    private func rows(_ results: Results, _ valueSize: Int, _ operation: Operation) -> [Row] {
        var rows: [Row] = []
        var previous = ""
        for measurement in results.measurements(valueSize, operation) {
            rows.append(
                Row(
                    name: measurement.backend == previous ? "" : measurement.backend,
                    items: grouped(measurement.items), latencies: measurement.latencies, isLimit: false))
            previous = measurement.backend
        }
        for limit in operation.limits.compactMap({ results.limit($0, valueSize) }) {
            rows.append(Row(name: limit.kind.rawValue, items: "", latencies: limit.latencies, isLimit: true))
        }
        return rows
    }

    private func figures(_ latencies: Latencies) -> String {
        var text = ""
        for (share, width) in zip([0.5, 0.9, 0.99, 0.999, 1], Self.figureWidths) {
            text += latencies.shown(share).right(width)
        }
        return text + grouped(Int(latencies.perSecond.rounded())).right(Self.rateWidth)
    }

    private func trimmed(_ line: String) -> String {
        var line = line
        while line.last == " " { line.removeLast() }
        return line
    }

    /// Returns `text` in lines of the terminal's width.
    private func wrapped(_ text: String) -> String {
        var lines = [""]
        for word in text.split(separator: " ") {
            let line = lines[lines.count - 1]
            if line.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if line.count + 1 + word.count <= columns {
                lines[lines.count - 1] += " \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func heading(_ text: String) -> String {
        isStyled ? "\u{1b}[1m\(trimmed(text))\u{1b}[0m" : trimmed(text)
    }

    /// Returns the line in its style. Rows of machine limits are dim.
    private func styled(_ line: String, _ row: Row) -> String {
        isStyled && row.isLimit ? "\u{1b}[2m\(trimmed(line))\u{1b}[0m\n" : trimmed(line) + "\n"
    }
}

extension Table {
    /// A chart of latencies on a scale of powers of ten. `●` is at the median, `━` reaches the 90th
    /// percentile, `─` the 99th, `·` the longest.
    struct Chart {
        /// The narrowest chart that still shows differences.
        static let leastWidth = 16
        private let width: Int
        private var low = 0
        private var high = 1

        /// Creates a scale for all of `all`; empty when `width` has no room for a scale.
        init(all: [Latencies], width: Int) {
            self.width = width < Self.leastWidth ? 0 : min(width, 56)
            let counted = all.filter { $0.count > 0 }
            let least = counted.map { $0.percentile(0.5) }.min() ?? 1
            let most = counted.map(\.maximum).max() ?? 10
            low = Int(Logarithm.decimal(max(least, 0.01)).rounded(.down))
            high = max(low + 1, Int(Logarithm.decimal(max(most, 0.01)).rounded(.up)))
        }

        /// Whether there is no room for the chart.
        var isEmpty: Bool { width == 0 }

        private func place(_ microseconds: Double) -> Int {
            let share = (Logarithm.decimal(max(microseconds, 0.001)) - Double(low)) / Double(high - low)
            return min(width - 1, max(0, Int(share * Double(width))))
        }

        /// The labels of the powers of ten, as many as fit.
        var scale: String {
            guard width > 0 else { return "" }
            var text = ""
            for exponent in low..<high {
                let at = place(Logarithm.power(Double(exponent)) * 1.000_001)
                guard at >= text.count + (text.isEmpty ? 0 : 1) else { continue }
                text = text.left(at) + scaleLabel(exponent: exponent, space: "")
            }
            return text
        }

        func bar(_ latencies: Latencies) -> String {
            guard width > 0, latencies.count > 0 else { return "" }
            var bar = [Character](repeating: " ", count: width)
            for (share, mark) in [(1, "·"), (0.99, "─"), (0.9, "━")] as [(Double, Character)]
            where latencies.isTold(share) {
                for index in place(latencies.percentile(0.5))...place(latencies.percentile(share)) {
                    bar[index] = mark
                }
            }
            bar[place(latencies.percentile(0.5))] = "●"
            return String(bar)
        }
    }
}
