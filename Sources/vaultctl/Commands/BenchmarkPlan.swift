import TokenVault

/// What `benchmark` does with a storage: fill it, then store, retrieve and delete, each call timed alone.
struct BenchmarkPlan {
    let items: Int
    let valueSize: Int
    let samples: Int

    /// Runs it, asking `isInterrupted` between calls; interrupted, it gives what there is.
    func run(
        _ backend: String, _ storage: any BlockingTokenStorage, _ console: Console,
        _ isInterrupted: () -> Bool
    ) throws(CommandFailure) -> [Measurement] {
        let secret = Secret(Self.bytes(valueSize))
        var filled = 0
        while filled < items, !isInterrupted() {
            let count = min(500, items - filled)
            let changes = (filled..<filled + count).map { TokenChange.store(secret, for: Self.key($0)) }
            try calling { () throws(TokenStorageError) in _ = try storage.commit(changes) }
            filled += count
            console.progress.show("\(backend): filling", filled, of: items)
        }
        // Retrieving comes last but one, so that there is something to retrieve in an empty storage too.
        let total = items + samples
        let store = try measure(backend, "store", console, isInterrupted) {
            (index) throws(TokenStorageError) in _ = try storage.store(secret, for: Self.key(items + index))
        }
        let retrieve = try measure(backend, "retrieve", console, isInterrupted) {
            (_) throws(TokenStorageError) in
            _ = try storage.secret(for: Self.key(Int.random(in: 0..<total)))
        }
        let delete = try measure(backend, "delete", console, isInterrupted) {
            (index) throws(TokenStorageError) in _ = try storage.delete(for: Self.key(items + index))
        }
        return [store, retrieve, delete]
    }

    private func measure(
        _ backend: String, _ operation: String, _ console: Console, _ isInterrupted: () -> Bool,
        _ call: (Int) throws(TokenStorageError) -> Void
    ) throws(CommandFailure) -> Measurement {
        var durations: [Duration] = []
        durations.reserveCapacity(samples)
        for index in 0..<samples where !isInterrupted() {
            let start = ContinuousClock.now
            try calling { () throws(TokenStorageError) in try call(index) }
            durations.append(start.duration(to: .now))
            console.progress.show("\(backend): \(operation)", index, of: samples)
        }
        return Measurement(
            backend: backend, operation: operation, items: items, valueSize: valueSize,
            durations: durations)
    }

    static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

    private static func key(_ number: Int) -> TokenKey { TokenKey("item-\(number)") }
}

/// The latencies of one operation. All of them are kept and sorted: the percentiles are exact.
struct Measurement {
    let backend: String
    let operation: String
    let items: Int
    let valueSize: Int
    private let microseconds: [Double]

    init(backend: String, operation: String, items: Int, valueSize: Int, durations: [Duration]) {
        self.backend = backend
        self.operation = operation
        self.items = items
        self.valueSize = valueSize
        microseconds = durations.map { $0 / .microseconds(1) }.sorted()
    }

    var count: Int { microseconds.count }

    /// The least latency in microseconds that this part of the calls did not exceed; 0 without any.
    func percentile(_ part: Double) -> Double {
        guard !microseconds.isEmpty else { return 0 }
        let rank = Int((part * Double(count)).rounded(.up))
        return microseconds[min(max(rank, 1), count) - 1]
    }

    /// Calls a second, one after the other.
    var perSecond: Double {
        let total = microseconds.reduce(0, +)
        return total > 0 ? Double(count) * 1_000_000 / total : 0
    }

    static let header = line(
        ["backend", "operation"], ["p50", "p90", "p99", "p99.9", "max", "per second"])

    var row: String {
        let latencies = [0.5, 0.9, 0.99, 0.999, 1].map { part in
            let tenths = Int((percentile(part) * 10).rounded())
            return "\(tenths / 10).\(tenths % 10)"
        }
        return Self.line([backend, operation], latencies + [String(Int(perSecond))])
    }

    private static func line(_ names: [String], _ figures: [String]) -> String {
        names.map { $0 + String(repeating: " ", count: max(1, 16 - $0.count)) }.joined()
            + figures.map { String(repeating: " ", count: max(1, 12 - $0.count)) + $0 }.joined()
    }
}
