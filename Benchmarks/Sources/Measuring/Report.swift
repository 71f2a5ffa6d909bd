import Glibc

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What a figure has to keep to.
public enum Limit {
    case atMost(Double)
    case atLeast(Double)
}

/// Says what was measured: to people on standard error, and each figure with what it was to be as a line of JSON on standard
/// output, from which `Scripts/bench-table.py` makes the table.
public enum Report {
    /// A line for people.
    public static func say(_ text: String) {
        let line = Array((text + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }

    /// The median and the 99th percentile of each, in microseconds or, from a thousand on, milliseconds.
    public static func say(_ figures: [(String, Measurement)]) {
        for (name, times) in figures {
            say("  \(name): p50 \(duration(times.p50)), p99 \(duration(times.percentile(0.99)))")
        }
    }

    /// A figure with its limit; without one it is shown and not judged. `figures` are what it was made of.
    public static func judge(
        _ name: String, _ figure: Spread, _ limit: Limit?, unit: String = "×",
        of figures: [(String, Measurement)] = []
    ) {
        say(figures)
        var line = Line(
            name: name, value: figure.value, low: figure.low, high: figure.high, unit: unit,
            figures: figures.map { Figure(name: $0, p50: $1.p50, p99: $1.percentile(0.99)) })
        switch limit {
        case .atMost(let limit):
            (line.limit, line.bound, line.isMet) = (limit, "at most", figure.value <= limit)
        case .atLeast(let limit):
            (line.limit, line.bound, line.isMet) = (limit, "at least", figure.value >= limit)
        case nil: break
        }
        let verdict = line.isMet.map { $0 ? "met   " : "MISSED" } ?? "      "
        let asked = line.limit.map { " (\(line.bound ?? "") \($0))" } ?? ""
        say(
            "  \(verdict)  \(name): \(rounded(figure.value)) \(unit)\(asked), "
                + "\(rounded(figure.low)) to \(rounded(figure.high)) within the run")
        // A figure that is not finite has no JSON form: nothing was measured, or no time passed. The other
        // figures do not count then.
        guard let data = try? JSONEncoder().encode(line) else {
            say("there is no figure for: \(name)")
            exit(1)
        }
        print(String(decoding: data, as: UTF8.self))
        // Flushes the output, so that the end of the process loses no figure.
        fflush(nil)
    }

    private static func duration(_ microseconds: Double) -> String {
        microseconds < 1_000 ? "\(rounded(microseconds)) µs" : "\(rounded(microseconds / 1_000)) ms"
    }

    private struct Line: Encodable {
        var name: String
        var value, low, high: Double
        var unit: String
        var limit: Double?
        var bound: String?
        var isMet: Bool?
        var figures: [Figure]
    }

    private struct Figure: Encodable {
        var name: String
        /// In microseconds.
        var p50, p99: Double
    }
}
