import TokenVaultPlatform

/// The figures as a person likes to see them, each with its place on a scale.
struct Table {
    /// How wide the terminal is.
    let columns: Int
    /// Whether parts of it are bold and dim.
    let isStyled: Bool

    private static let figureWidths = [8, 8, 8, 8, 9]
    private static let textWidth = 14 + 8 + figureWidths.reduce(0, +) + 10

    /// The whole text.
    func text(_ results: Results) -> String {
        var text = ""
        for valueSize in results.valueSizes {
            text += heading("Secrets of \(grouped(valueSize)) bytes; latencies in microseconds") + "\n"
            for operation in Operation.allCases { text += "\n" + block(results, valueSize, operation) }
            text += "\n"
        }
        for (backend, reason) in results.leftOut { text += "\(backend) was left out: \(reason).\n" }
        return text
    }

    private func block(_ results: Results, _ valueSize: Int, _ operation: Operation) -> String {
        let measurements = results.measurements(valueSize, operation)
        let limits = operation.limits.compactMap { results.limit($0, valueSize) }
        let chart = Chart(
            all: measurements.map(\.latencies) + limits.map(\.latencies), width: columns - Self.textWidth - 2)
        var text = heading(operation.rawValue.left(14) + "items".right(8))
        for (name, width) in zip(["p50", "p90", "p99", "p99.9", "max"], Self.figureWidths) {
            text += name.right(width)
        }
        text += "a second".right(10) + "  \(chart.scale)"
        text = trimmed(text) + "\n"
        var previous = ""
        for measurement in measurements {
            let name = measurement.backend == previous ? "" : measurement.backend
            previous = measurement.backend
            text += row(
                name, grouped(measurement.items), measurement.latencies, chart.bar(measurement.latencies))
        }
        for limit in limits {
            text += dim(row(limit.kind.rawValue, "", limit.latencies, chart.bar(limit.latencies)))
        }
        return text
    }

    private func row(_ name: String, _ items: String, _ latencies: Latencies, _ bar: String) -> String {
        var line = name.left(14) + items.right(8)
        for (share, width) in zip([0.5, 0.9, 0.99, 0.999, 1], Self.figureWidths) {
            line += figure(latencies.percentile(share)).right(width)
        }
        line += grouped(Int(latencies.perSecond.rounded())).right(10) + "  \(bar)"
        return trimmed(line) + "\n"
    }

    private func trimmed(_ line: String) -> String {
        var line = line
        while line.last == " " { line.removeLast() }
        return line
    }

    private func heading(_ text: String) -> String { isStyled ? "\u{1b}[1m\(text)\u{1b}[0m" : text }
    private func dim(_ line: String) -> String {
        isStyled ? "\u{1b}[2m\(line.dropLast())\u{1b}[0m\n" : line
    }
}

extension Table {
    /// Where latencies are on a scale of powers of ten: `●` at the median, `━` to the 90th percentile, `─` to the 99th, `·` to
    /// the longest.
    struct Chart {
        private let width: Int
        private var low = 0
        private var high = 1

        /// A scale for `all` of them; nothing when `width` has no room for one.
        init(all: [Latencies], width: Int) {
            self.width = width < 12 ? 0 : min(width, 48)
            let counted = all.filter { $0.count > 0 }
            let least = counted.map { $0.percentile(0.5) }.min() ?? 1
            let most = counted.map(\.maximum).max() ?? 10
            low = Int(Logarithm.decimal(max(least, 0.01)).rounded(.down))
            high = max(low + 1, Int(Logarithm.decimal(max(most, 0.01)).rounded(.up)))
        }

        private func place(_ microseconds: Double) -> Int {
            let share = (Logarithm.decimal(max(microseconds, 0.001)) - Double(low)) / Double(high - low)
            return min(width - 1, max(0, Int(share * Double(width))))
        }

        /// The powers of ten, as many as there is room for.
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
            for (share, mark) in [(1, "·"), (0.99, "─"), (0.9, "━")] as [(Double, Character)] {
                for index in place(latencies.percentile(0.5))...place(latencies.percentile(share)) {
                    bar[index] = mark
                }
            }
            bar[place(latencies.percentile(0.5))] = "●"
            return String(bar)
        }
    }
}
