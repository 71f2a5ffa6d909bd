/// The page that `--report` writes: text, tables and drawings. The page loads and runs nothing.
struct Report {
    private let results: Results

    init(_ results: Results) { self.results = results }

    /// The page as HTML that is also well-formed XML.
    var html: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8"/>
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
        <meta name="viewport" content="width=device-width, initial-scale=1"/>
        <meta name="color-scheme" content="light dark"/>
        <title>Latency of the backends</title>
        <style>
        \(Self.style)
        </style>
        </head>
        <body>
        <h1>Latency of the backends</h1>
        <p>The calls were timed one at a time, and the backends took turns. A percentile is the latency that this share of the
        calls did not exceed; it is left out where the calls are too few. The dashed grey lines are the medians of the machine's own
        steps, measured in the same run.</p>
        \(facts)
        \(results.valueSizes.map(section).joined())
        \(leftOut)</body>
        </html>

        """
    }

    private var facts: String {
        "<dl>\n"
            + results.facts.map { "<dt>\(escaped($0.name))</dt><dd>\(escaped($0.value))</dd>\n" }.joined()
            + "</dl>\n"
    }

    private var leftOut: String {
        results.leftOut.map { "<p>\(escaped($0.backend)) was left out: \(escaped($0.reason)).</p>\n" }
            .joined()
    }

    private func section(_ valueSize: Int) -> String {
        var text = "<h2>Secrets of \(grouped(valueSize)) bytes</h2>\n"
        for operation in Operation.allCases {
            text += "<section>\n<h3>\(operation.rawValue)</h3>\n<div class=\"charts\">\n"
            text += Curves(results: results, valueSize: valueSize, operation: operation).figures
            text += "</div>\n<div class=\"wide\">\n\(table(valueSize, operation))</div>\n"
            text += (results.note(on: operation).map { "<p>\($0)</p>\n" } ?? "") + "</section>\n"
        }
        return text
    }

    private func table(_ valueSize: Int, _ operation: Operation) -> String {
        let heads = ["", "items", "calls", "p50", "p90", "p99", "p99.9", "max", "a second"]
        var text = "<table>\n<caption>Microseconds</caption>\n<thead><tr>"
        text += heads.map { "<th scope=\"col\">\($0)</th>" }.joined() + "</tr></thead>\n<tbody>\n"
        for measurement in results.measurements(valueSize, operation) {
            text += row(measurement.backend, grouped(measurement.items), measurement.latencies)
        }
        for limit in operation.limits.compactMap({ results.limit($0, valueSize) }) {
            text += row(limit.title, "", limit.latencies, style: " class=\"limit\"")
        }
        return text + "</tbody>\n</table>\n"
    }

    private func row(_ name: String, _ items: String, _ latencies: Latencies, style: String = "") -> String {
        let figures = [0.5, 0.9, 0.99, 0.999, 1].map { latencies.shown($0) }
        let cells =
            [items, grouped(latencies.count)] + figures + [grouped(Int(latencies.perSecond.rounded()))]
        return "<tr\(style)><th scope=\"row\">\(escaped(name))</th>"
            + cells.map { "<td>\($0)</td>" }.joined() + "</tr>\n"
    }

    private static let style = """
        :root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2128; --soft: #59636e; --grid: #dfe3e8;
          --memory: #8250df; --file: #0969da; --agent: #1a7f37; --secret-service: #bc4c00; }
        @media (prefers-color-scheme: dark) {
          :root { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --grid: #2a313b;
            --memory: #bc8cff; --file: #58a6ff; --agent: #3fb950; --secret-service: #f0883e; }
        }
        body { margin: 2rem auto; max-width: 82rem; padding: 0 1.25rem; background: var(--paper); color: var(--ink);
          font: 16px/1.5 system-ui, sans-serif; }
        p { max-width: 46rem; }
        h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--grid); }
        h3 { margin: 1.5rem 0 0.5rem; }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; margin: 0; }
        dt { color: var(--soft); } dd { margin: 0; }
        .wide { overflow-x: auto; }
        .charts { display: flex; flex-wrap: wrap; gap: 1rem; }
        figure { flex: 1 1 30rem; margin: 0; min-width: 0; max-width: 42rem; }
        figcaption, caption { color: var(--soft); font-size: 0.875rem; text-align: left; }
        svg { display: block; width: 100%; height: auto; font: 13px system-ui, sans-serif; }
        table { border-collapse: collapse; margin-top: 0.5rem; font-variant-numeric: tabular-nums; font-size: 0.875rem; }
        th, td { padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid var(--grid); font-weight: normal;
          white-space: nowrap; }
        thead th, .limit th, .limit td { color: var(--soft); }
        tbody th { text-align: left; }
        .grid { stroke: var(--grid); stroke-width: 1; }
        .tick { fill: var(--soft); } .end { text-anchor: end; } .middle { text-anchor: middle; }
        .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
        .leader { stroke: var(--grid); stroke-width: 1; }
        .thin { stroke-width: 1; stroke-dasharray: 2 3; }
        .limit.line { stroke-width: 1.25; stroke-dasharray: 6 4; }
        .line.memory { stroke: var(--memory); } .line.file { stroke: var(--file); } .line.agent { stroke: var(--agent); }
        .line.secret-service { stroke: var(--secret-service); } .line.limit { stroke: var(--soft); }
        circle.memory, .label.memory { fill: var(--memory); } circle.file, .label.file { fill: var(--file); }
        circle.agent, .label.agent { fill: var(--agent); } .label.limit { fill: var(--soft); }
        circle.secret-service, .label.secret-service { fill: var(--secret-service); }
        """
}
