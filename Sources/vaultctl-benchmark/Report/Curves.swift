internal import ProgramSupport
import TokenVaultPlatform

/// The drawings of one operation: the spread of its latencies, and their growth with the number of items.
struct Curves {
    let results: Results
    let valueSize: Int
    let operation: Operation

    private var measurements: [Measurement] { results.measurements(valueSize, operation) }
    private var limits: [MachineLimit] { operation.limits.compactMap { results.limit($0, valueSize) } }
    private var sizes: [Int] { Array(Set(measurements.map(\.items))).sorted() }

    /// Both drawings, as HTML figures.
    var figures: String {
        var text = percentiles
        if sizes.count > 1 { text += growth }
        return text
    }

    /// The number of items at which the spread is shown: the largest that every backend was measured with.
    private var commonSize: Int? {
        sizes.last { size in results.backends.allSatisfy { has($0, size) } } ?? sizes.last
    }

    private func has(_ backend: String, _ size: Int) -> Bool {
        measurements.contains { $0.backend == backend && $0.items == size }
    }

    private var percentiles: String {
        guard let size = commonSize else { return "" }
        let shown = measurements.filter { $0.items == size && $0.latencies.count > 0 }
        let x = Axis.percentiles(count: shown.map(\.latencies.count).max() ?? 1)
        let limitHeights = limits.map { $0.latencies.percentile(0.5) }
        let y = Axis.latency(
            limitHeights + shown.flatMap { [$0.latencies.percentile(0), $0.latencies.maximum] })
        let lines = shown.map { measurement in
            LineChart.Line(
                name: measurement.backend, style: measurement.backend,
                points: points(measurement.latencies), hasDots: false)
        }
        let chart = LineChart(
            title: "Percentiles of \(operation.rawValue)", xTitle: "share of the calls", x: x, y: y,
            lines: limitLines(x) + lines)
        return figure(chart, "Latency by percentile, with \(grouped(size)) items in the storage")
    }

    /// Returns the points of the curve, as far as the number of calls allows. The last point is the longest
    /// latency.
    private func points(_ latencies: Latencies) -> [(x: Double, y: Double)] {
        let last = Axis.logarithm(Double(latencies.count))
        var points: [(x: Double, y: Double)] = []
        for nines in stride(from: 0, to: last, by: 0.04) {
            let share = 1 - Logarithm.power(-nines)
            points.append((nines, Axis.logarithm(latencies.percentile(share))))
        }
        points.append((last, Axis.logarithm(latencies.maximum)))
        return points
    }

    private var growth: String {
        let counted = measurements.filter { $0.latencies.count > 0 }
        let x = Axis.items(sizes)
        let limitHeights = limits.map { $0.latencies.percentile(0.5) }
        let y = Axis.latency(
            limitHeights
                + counted.flatMap { one in
                    [0.5, 0.99].filter { $0 <= 0.5 || one.latencies.isTold($0) }.map {
                        one.latencies.percentile($0)
                    }
                })
        var lines: [LineChart.Line] = []
        for backend in results.backends {
            let own = counted.filter { $0.backend == backend }
            func line(_ name: String?, _ share: Double, _ style: String, hasDots: Bool) -> LineChart.Line {
                LineChart.Line(
                    name: name, style: style,
                    points: own.filter { share <= 0.5 || $0.latencies.isTold(share) }.map {
                        (Axis.logarithm(Double($0.items)), Axis.logarithm($0.latencies.percentile(share)))
                    }, hasDots: hasDots)
            }
            let slow = line(nil, 0.99, "thin \(backend)", hasDots: false)
            if slow.points.count > 1 { lines.append(slow) }
            lines.append(line(backend, 0.5, backend, hasDots: true))
        }
        let chart = LineChart(
            title: "\(operation.rawValue) against the number of items", xTitle: "items in the storage", x: x,
            y: y, lines: limitLines(x) + lines)
        return figure(chart, "Latency against the number of items; p50, dotted p99")
    }

    private func limitLines(_ x: Axis) -> [LineChart.Line] {
        limits.filter { $0.latencies.count > 0 }.map { limit in
            let height = Axis.logarithm(limit.latencies.percentile(0.5))
            return LineChart.Line(
                name: limit.kind.rawValue, style: "limit", points: [(x.low, height), (x.high, height)],
                hasDots: false)
        }
    }

    private func figure(_ chart: LineChart, _ caption: String) -> String {
        "<figure>\n\(chart.svg)<figcaption>\(escaped(caption))</figcaption>\n</figure>\n"
    }
}
