import TestLanes
import Testing

@testable import vaultctl_benchmark

/// What `vaultctl benchmark` makes of latencies.
@Suite(.tags(.programs), .from(.all)) struct BenchmarkFiguresTests {
    private func latencies(_ microseconds: some Sequence<Int>) -> Latencies {
        var latencies = Latencies()
        for number in microseconds { latencies.record(.microseconds(number)) }
        return latencies
    }

    @Test func percentilesAreExactToThreeDigits() {
        let latencies = latencies((1...10_000).reversed())
        #expect(latencies.count == 10_000)
        for (share, exact) in [(0.5, 5_000.0), (0.9, 9_000), (0.99, 9_900), (0.999, 9_990)] {
            #expect(abs(latencies.percentile(share) / exact - 1) <= 0.001, "\(share)")
        }
        #expect(
            latencies.percentile(0) <= 1.001 && latencies.percentile(1) == 10_000
                && latencies.maximum == 10_000)
        // The mean is 5,000.5 µs.
        #expect(abs(latencies.perSecond - 1e6 / 5_000.5) < 0.01)
        #expect(Latencies().percentile(0.5) == 0 && Latencies().perSecond == 0)
    }

    @Test(
        arguments: [
            (0.0, "0.00"), (1.234, "1.23"), (9.994, "9.99"), (9.996, "10.0"), (45.64, "45.6"), (99.96, "100"),
            (789.4, "789"), (12_345.6, "12,346"), (999_999.4, "999,999"), (1_234_567, "1.23 s"),
        ])
    func threeDigitsAreShown(_ microseconds: Double, _ text: String) {
        #expect(figure(microseconds) == text)
    }

    @Test func scalesHaveUnits() {
        #expect(
            (-2...7).map { scaleLabel(exponent: $0) }
                == [
                    "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s",
                ])
        #expect(fixed(0.5, 3) == "0.500" && fixed(12.0449, 2) == "12.04" && fixed(-0.25, 1) == "-0.3")
        #expect(grouped(0) == "0" && grouped(-1_234_567) == "-1,234,567")
    }

    private var results: Results {
        var results = Results()
        for (backend, slow) in [("file", 300), ("secret-service", 1_500_000)] {
            for operation in Operation.allCases {
                results.measurements.append(
                    Measurement(
                        backend: backend, operation: operation, items: 10_000_000, valueSize: 1_024,
                        latencies: latencies(slow...slow + 99)))
            }
        }
        results.limits = [
            MachineLimit(kind: .sync, bytes: 1_960, valueSize: 1_024, latencies: latencies([100]))
        ]
        return results
    }

    @Test func theTableFitsTheTerminal() {
        for columns in [80, 95, 96, 120, 300] {
            let lines = Table(columns: columns, isStyled: false).text(results).split(separator: "\n")
            #expect(lines.allSatisfy { $0.count <= columns && $0.last != " " }, "\(columns)")
            // The marks are beside the figures or below them, but their number stays the same.
            #expect(lines.count { $0.contains("●") && !$0.contains("median") } == 8, "\(columns)")
            #expect(lines.joined(separator: " ").contains("● median"), "\(columns)")
            #expect(lines.contains { $0.hasPrefix("secret-service 10,000,000") }, "\(columns)")
            #expect(
                lines.joined(separator: " ").contains("writes the other items into a new file"), "\(columns)")
        }
        #expect(!Table(columns: 38, isStyled: false).text(results).contains("●"))
    }

    /// The slowest of thirty calls is no 99th percentile.
    @Test func whatTooFewCallsDoNotTellIsLeftOut() {
        let few = latencies(1...100)
        #expect([0.5, 0.9, 0.99, 0.999, 1].map { few.shown($0) } == ["50.0", "90.0", "99.0", "–", "100"])
        #expect([0.5, 1].map { Latencies().shown($0) } == ["–", "–"])
        // The chart leaves the percentile out as well.
        let nine = latencies([10, 20, 40, 80, 160, 320, 640, 1_280, 9_000])
        let bar = Table.Chart(all: [nine], width: 60).bar(nine)
        #expect(bar.contains("·") && !bar.contains("─") && !bar.contains("━"), "\(bar)")
    }

    /// Of memory, where ten million calls a second are no rarity.
    @Test func noFigureTouchesTheOneBeside() throws {
        var quick = Latencies()
        for _ in 1...10 { quick.record(.nanoseconds(10)) }
        var results = Results()
        results.measurements = [
            Measurement(
                backend: "memory", operation: .retrieve, items: 100, valueSize: 1_024, latencies: quick)
        ]
        let text = Table(columns: 80, isStyled: false).text(results)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("memory") })
        let words = line.split(separator: " ").map(String.init)
        #expect(words == ["memory", "100", "0.01", "0.01", "–", "–", "0.01", "100,000,000"])
    }

    /// On one scale of powers of ten, what is slower is further right.
    @Test func theChartIsInOrder() throws {
        let chart = Table.Chart(all: [latencies([10]), latencies([10_000])], width: 31)
        let places = try [10, 100, 1_000, 10_000].map {
            try #require(chart.bar(latencies([$0])).firstIndex(of: "●")).utf16Offset(
                in: chart.bar(latencies([$0])))
        }
        #expect(places == [0, 10, 20, 30])
        #expect(chart.scale == "10µs      100µs     1ms")
    }

    @Test func whatIsNotOursIsEscaped() {
        var results = results
        results.facts = [MachineFact(name: "Processor", value: "<b>\"A\" & 'B'</b>\u{1b}")]
        let html = Report(results).html
        #expect(html.contains("&lt;b&gt;&quot;A&quot; &amp; &#39;B&#39;&lt;/b&gt; ") && !html.contains("<b>"))
    }

    @Test(
        arguments: [
            [], ["--items", "1"], ["--items"],
            ["--value-size", "1", "--version-of-vaultctl", "0", "--other", "1"],
            ["--value-size", "x", "--version-of-vaultctl", "0"],
        ])
    func onlyVaultctlIsUnderstood(_ words: [String]) {
        #expect(BenchmarkArguments(words) == nil)
    }
}
