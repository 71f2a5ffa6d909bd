/// A chart of lines over two axes, as SVG without external resources. The page's style gives the colours.
struct LineChart {
    struct Line {
        /// The text at the end of the line; `nil` for a companion of another line.
        let name: String?
        /// The CSS class that colours the line.
        let style: String
        let points: [(x: Double, y: Double)]
        let hasDots: Bool
    }

    let title: String
    let xTitle: String
    let x: Axis
    let y: Axis
    var lines: [Line]

    private static let width = 600.0
    private static let height = 340.0
    private static let left = 64.0
    private static let right = 490.0
    private static let top = 14.0
    private static let bottom = 290.0

    /// The chart as SVG.
    var svg: String {
        var svg =
            "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" aria-label=\"\(escaped(title))\">\n"
        for tick in y.ticks {
            let at = vertical(tick.value)
            svg += line("grid", Self.left, at, Self.right, at)
            svg += text("tick end", Self.left - 8, at + 4, tick.label)
        }
        for tick in x.ticks {
            let at = horizontal(tick.value)
            svg += line("grid", at, Self.top, at, Self.bottom)
            svg += text("tick middle", at, Self.bottom + 18, tick.label)
        }
        svg += text("tick middle", (Self.left + Self.right) / 2, Self.bottom + 40, xTitle)
        for line in lines { svg += polyline(line) }
        return svg + labels() + "</svg>\n"
    }

    private func polyline(_ line: Line) -> String {
        let places = line.points.map { (horizontal($0.x), vertical($0.y)) }
        let points = places.map { "\(number($0.0)),\(number($0.1))" }.joined(separator: " ")
        var svg = "<polyline class=\"line \(line.style)\" points=\"\(points)\"/>\n"
        guard line.hasDots else { return svg }
        for (x, y) in places {
            svg += "<circle class=\"\(line.style)\" cx=\"\(number(x))\" cy=\"\(number(y))\" r=\"3\"/>\n"
        }
        return svg
    }

    /// Returns the names beside the drawing, far enough apart to be legible. A thread leads to each line that
    /// ends early.
    private func labels() -> String {
        let distance = 14.0
        let named = lines.compactMap { line -> (name: String, style: String, x: Double, y: Double)? in
            guard let name = line.name, let last = line.points.last else { return nil }
            return (name, line.style, horizontal(last.x), vertical(last.y))
        }.sorted { $0.y < $1.y }
        var places: [Double] = []
        for label in named { places.append(max(label.y, (places.last ?? -distance) + distance)) }
        // Labels that were pushed below the chart move up again.
        var lowest = Self.bottom + 4
        for index in places.indices.reversed() {
            places[index] = min(places[index], lowest)
            lowest = places[index] - distance
        }
        return zip(named, places).map { label, y in
            (label.x < Self.right - 1 ? line("leader", label.x + 4, label.y, Self.right + 4, y) : "")
                + text("label \(label.style)", Self.right + 8, y + 4, label.name)
        }.joined()
    }

    private func horizontal(_ value: Double) -> Double {
        Self.left + x.place(value) * (Self.right - Self.left)
    }
    private func vertical(_ value: Double) -> Double {
        Self.bottom - y.place(value) * (Self.bottom - Self.top)
    }

    private func line(_ style: String, _ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double) -> String {
        "<line class=\"\(style)\" x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" y2=\"\(number(y2))\"/>\n"
    }

    private func text(_ style: String, _ x: Double, _ y: Double, _ text: String) -> String {
        "<text class=\"\(style)\" x=\"\(number(x))\" y=\"\(number(y))\">\(escaped(text))</text>\n"
    }

    private func number(_ value: Double) -> String { fixed(value, 1) }
}

/// Returns `text` escaped for HTML and SVG.
func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        case "'": result += "&#39;"
        default: result.unicodeScalars.append(scalar.value < 0x20 ? " " : scalar)
        }
    }
    return result
}
