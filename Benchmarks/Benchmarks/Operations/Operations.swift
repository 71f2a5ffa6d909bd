import Benchmark

/// Each operation on each backend: `make bench` runs them and holds them against `thresholds.json`, which `make
/// bench-thresholds` writes anew.
///
/// Each benchmark runs in a process of its own; what it works on is made in its first call. Which of the counts are the same each
/// time, and how far a figure may be from its threshold, `Scripts/bench-operations.py` knows.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        // The export to JSON requires the throughput metric.
        metrics: [.throughput, .wallClock, .readSyscalls, .writeSyscalls, .writeBytesLogical],
        warmupIterations: 1,
        maxDuration: .milliseconds(700))
    for backend in Backend.allCases {
        registerItems(backend)
        registerWriters(backend)
    }
    registerUnlocking()
    registerVaultSizes()
    registerErasing()
}

/// Registers `operation`, which is done on what `prepare` makes; it gets a number that is another each time. `scale` is how
/// often it is done for one measurement: as often as makes it long against reading the clock, which the name then tells. What `isLong` is done once
/// or a few times, without warming.
func register<Subject>(
    _ name: String, scale: BenchmarkScalingFactor = .one, iterations: Int = 10_000, isLong: Bool = false,
    prepare: @escaping () throws -> Subject, operation: @escaping (Subject, Int) throws -> Void
) {
    var configuration = Benchmark.defaultConfiguration
    configuration.scalingFactor = scale
    configuration.maxIterations = iterations
    if isLong { configuration.warmupIterations = 0 }
    var subject: Subject?
    var number = 0
    let times = scale == .one ? "" : "-\(scale.rawValue)-times"
    Benchmark(name + times, configuration: configuration) { benchmark in
        guard let subject else { return }
        benchmark.startMeasurement()
        for _ in benchmark.scaledIterations {
            try operation(subject, number)
            number += 1
        }
        benchmark.stopMeasurement()
    } setup: {
        subject = try prepare()
    } teardown: {
        subject = nil
    }
}
