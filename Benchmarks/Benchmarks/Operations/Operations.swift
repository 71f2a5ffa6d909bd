import Benchmark

/// Each operation on each backend: `make bench` runs them and holds them against the thresholds that are checked in,
/// `make bench-thresholds` writes those anew.
///
/// Names are those of the files with thresholds, so they have neither spaces nor slashes. Each benchmark runs in a process of
/// its own; what it works on is made in its first call.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, .readSyscalls, .writeSyscalls, .writeBytesLogical],
        warmupIterations: 2,
        maxDuration: .milliseconds(700),
        thresholds: Tolerances.all)
    for backend in Backend.allCases {
        registerItems(backend)
        registerWriters(backend)
    }
    registerUnlocking()
    registerVaultSizes()
}

/// How far from the thresholds the 90th percentile may be, in per cent.
///
/// What is read and written is the same on every machine, and so is how often. How long that takes is not: these are five
/// times what it took where the thresholds come from, enough to find what was forgotten (a scan of all items, a key derived
/// anew), and not what makes something a tenth slower; ratios taken in turn tell that.
enum Tolerances {
    static var all: [BenchmarkMetric: BenchmarkThresholds] {
        [
            .wallClock: BenchmarkThresholds(relative: [.p90: 400]),
            .readSyscalls: BenchmarkThresholds(relative: [.p90: 25]),
            .writeSyscalls: BenchmarkThresholds(relative: [.p90: 25]),
            .writeBytesLogical: BenchmarkThresholds(relative: [.p90: 25]),
        ]
    }
}

/// Registers `operation`, which is done on what `prepare` makes; it gets a number that is another each time. `scale` is how
/// often it is done for one measurement: as often as makes it long against reading the clock.
func register<Subject>(
    _ name: String, scale: BenchmarkScalingFactor = .one, iterations: Int = 10_000,
    prepare: @escaping () throws -> Subject, operation: @escaping (Subject, Int) throws -> Void
) {
    var configuration = Benchmark.defaultConfiguration
    configuration.scalingFactor = scale
    configuration.maxIterations = iterations
    var subject: Subject?
    var number = 0
    Benchmark(name, configuration: configuration) { benchmark in
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
