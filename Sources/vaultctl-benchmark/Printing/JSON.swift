/// The measurements as one line of JSON, for `vaultctl benchmark --json`.
enum JSON {
    static func text(_ results: Results) -> String {
        "[" + results.measurements.map { object($0, results) }.joined(separator: ",") + "]\n"
    }

    // No text needs escaping, because all texts come from this program.
    private static func object(_ measurement: Measurement, _ results: Results) -> String {
        let latencies = measurement.latencies
        var members = [
            "\"backend\":\"\(measurement.backend)\"", "\"operation\":\"\(measurement.operation.rawValue)\"",
            "\"items\":\(measurement.items)", "\"valueSize\":\(measurement.valueSize)",
            "\"count\":\(latencies.count)",
        ]
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            members.append("\"\(name)\":\(fixed(latencies.percentile(share), 3))")
        }
        members.append("\"max\":\(fixed(latencies.maximum, 3))")
        members.append("\"perSecond\":\(Int(latencies.perSecond.rounded()))")
        if let kind = measurement.limit, let limit = results.limit(kind, measurement.valueSize) {
            members.append("\"limit\":\"\(kind.rawValue)\"")
            members.append("\"limitP50\":\(fixed(limit.latencies.percentile(0.5), 3))")
        }
        return "{" + members.joined(separator: ",") + "}"
    }
}
