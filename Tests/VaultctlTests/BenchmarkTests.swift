import Glibc
import TestLanes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vaultctl benchmark`: what it prints and writes, and that nothing of it stays. How fast anything is, no test says.
@Suite(.tags(.programs), .from(.all)) struct BenchmarkTests {
    private struct Row: Decodable, Equatable {
        var backend: String
        var operation: String
        var items: Int
        var valueSize: Int
        var count: Int
        var p50: Double
        var p90: Double
        var p99: Double
        var p999: Double
        var max: Double
        var perSecond: Int
        var limit: String?
        var limitP50: Double?
    }

    /// Few calls of few items: nothing is learnt from them.
    private static let small = ["--samples", "3", "--seconds", "30"]

    private func rows(_ sandbox: Sandbox, _ words: String...) throws -> [Row] {
        let outcome = try sandbox.run(arguments: ["benchmark", "--json"] + Self.small + words)
        try #require(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.isEmpty)
        return try JSONDecoder().decode([Row].self, from: Data(outcome.output))
    }

    @Test func everyBackendIsMeasuredInOrder() throws {
        let sandbox = try Sandbox()
        let rows = try rows(
            sandbox, "--items", "7", "--items", "2", "--items", "7", "--value-size", "64", "--value-size", "0"
        )
        var expected: [String] = []
        for size in [64, 0] {
            for items in [2, 7] {
                for backend in ["memory", "file", "agent"] {
                    for operation in ["store", "retrieve", "delete"] {
                        expected.append("\(backend) \(operation) \(items) \(size)")
                    }
                }
            }
        }
        #expect(rows.map { "\($0.backend) \($0.operation) \($0.items) \($0.valueSize)" } == expected)
        for row in rows {
            #expect(row.count == 3, "\(row)")
            #expect(0 < row.p50 && row.p50 <= row.p90 && row.p90 <= row.p99 && row.p99 <= row.p999, "\(row)")
            #expect(row.p999 <= row.max && row.perSecond > 0, "\(row)")
            let limit: String? =
                switch (row.backend, row.operation) {
                case ("memory", _): nil
                case ("file", "retrieve"): "AEAD"
                case (_, "retrieve"): "echo"
                default: "fdatasync"
                }
            #expect(row.limit == limit && (row.limitP50.map { $0 > 0 } ?? (limit == nil)), "\(row)")
        }
        #expect(try sandbox.shell("find . -mindepth 1").output.isEmpty)
    }

    @Test func onlyWhatWasAskedForIsMeasured() throws {
        let sandbox = try Sandbox()
        let rows = try rows(sandbox, "--backend", "memory", "--backend", "memory", "--items", "1")
        #expect(rows.map(\.backend) == ["memory", "memory", "memory"])
        #expect(rows.allSatisfy { $0.valueSize == 1_024 })
    }

    @Test func theTableNamesEverythingAndWhatWasLeftOut() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run(arguments: ["benchmark", "--items", "1200"] + Self.small)
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        for word in [
            "memory", "file", "agent", "fdatasync", "AEAD", "echo", "p99.9", "1,200", "1,024", "●",
            "secret-service was left out: ",
        ] {
            #expect(outcome.text.contains(word), "\(outcome.text)")
        }
        #expect(!outcome.text.contains("\u{1b}"))
    }

    @Test func aTerminalGetsProgressAndColoursUnlessItWantsNone() throws {
        let sandbox = try Sandbox()
        for plain in [false, true] {
            sandbox.environment["NO_COLOR"] = plain ? "1" : nil
            let terminal = try PseudoTerminal(
                sandbox, ["benchmark", "--backend", "file", "--items", "600"] + Self.small, type: "xterm")
            try terminal.expect("Measuring 600 items")
            try terminal.expect(plain ? "Secrets of" : "\u{1b}[1mSecrets of")
            #expect(try terminal.end() == 0)
            #expect(terminal.shown.contains("\u{1b}[") != plain)
        }
    }

    @Test func whatIsTheUsersStaysAsItIs() throws {
        let sandbox = try Sandbox.withVault()
        let facts =
            "sha256sum $(find . -type f | sort); find . -printf '%p %T@ %i %m\\n' | grep -v tokenvault' ' | sort"
        let before = try sandbox.shell(facts).text
        _ = try rows(sandbox, "--items", "3")
        #expect(try sandbox.shell(facts).text == before)
    }

    @Test func theReportIsOnePageThatNeedsNothing() throws {
        let sandbox = try Sandbox()
        let page = "\(sandbox.home)/page.html"
        let outcome = try sandbox.run(
            arguments: ["benchmark", "--report", page, "--items", "2", "--items", "20"] + Self.small)
        #expect(outcome.status == 0, "\(outcome.error)")
        let html = try String(contentsOfFile: page)
        for word in ["http:", "https:", "<script", "url(", "@import", "src=", "href="] {
            #expect(!html.contains(word), "\(word)")
        }
        for word in [
            "prefers-color-scheme: dark", "memory", "file", "agent", "File system", "fdatasync of 1,",
        ] {
            #expect(html.contains(word), "\(word)")
        }
        // Each of three operations has two drawings. Each of three backends has a line in the first drawing
        // and one in the second. It has another line where there are enough calls for a 99th percentile. Each
        // of the limits, two for retrieve, has one line in each drawing.
        let lines = 2 * (3 + 3 + 2) + 3 + 3 + 4
        let parsed = try sandbox.shell(
            """
            /usr/bin/python3 -B - page.html <<'PYTHON'
            import sys, xml.etree.ElementTree as tree
            page = tree.parse(sys.argv[1])
            lines = page.findall(".//polyline")
            assert all(len(line.get("points").split()) > 1 for line in lines)
            slow = [line for line in lines if "thin" in line.get("class").split()]
            assert len(slow) <= 9
            print(len(page.findall(".//svg")), len(page.findall(".//table")), len(lines) - len(slow))
            PYTHON
            stat --format %a page.html
            """)
        #expect(parsed.text == "6 3 \(lines)\n600\n", "\(parsed.text) \(parsed.error)")
    }

    @Test func aReportReplacesNothing() throws {
        let sandbox = try Sandbox()
        let there = try sandbox.file("there.html", "mine")
        try #require(symlink("\(sandbox.home)/nowhere", "\(sandbox.home)/link.html") == 0)
        for path in [there, "\(sandbox.home)/link.html"] {
            let outcome = try sandbox.run(arguments: ["benchmark", "--report", path] + Self.small)
            expectOneLine(outcome, status: 9, hiding: [path])
        }
        let missing = try sandbox.run(
            arguments: ["benchmark", "--report", "\(sandbox.home)/no/page.html"] + Self.small)
        expectOneLine(missing, status: 8)
        #expect(try String(contentsOfFile: there) == "mine")
        #expect(try sandbox.shell("find . -mindepth 1 | sort").text == "./link.html\n./there.html\n")
    }

    /// Said before minutes are spent, not behind them.
    @Test func aReportThatCannotBeWrittenIsToldAtOnce() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.shell(
            """
            mkdir -m 500 closed
            unprivileged() { if [[ $(id -u) == 0 ]]; then setpriv --bounding-set -dac_override "$@"; else "$@"; fi; }
            unprivileged "$V" benchmark --backend memory --items 1 --samples 1 --report closed/page.html
            echo "$?"
            """)
        #expect(outcome.text == "1\n" && outcome.error.contains("choose another path"), "\(outcome)")
    }

    /// Something took the name while it measured: the figures are not lost, and neither is what is there.
    @Test func aReportWhosePlaceWasTakenMeanwhile() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.shell(
            """
            "$V" benchmark --backend memory --items 1 --seconds 1 --report page.html & child=$!
            # It has looked by the time that it is the other program.
            until [[ $(readlink "/proc/$child/exe") == *-benchmark ]] || ! kill -0 "$child"; do :; done
            echo mine >page.html
            wait "$child"; echo "$?"; cat page.html
            """)
        #expect(outcome.text.contains("memory") && outcome.text.hasSuffix("9\nmine\n"), "\(outcome.text)")
        #expect(outcome.error == "vaultctl: the file already exists: choose another name\n")
    }

    @Test(
        arguments: [
            ["--items", "0"], ["--items", "10000001"], ["--items", typed], ["--value-size", "1048577"],
            ["--value-size", "-1"], ["--seconds", "0"], ["--seconds", "nan"], ["--seconds", typed],
            ["--samples", "0"], ["--samples", typed], ["--backend", typed], ["--backend="], ["--directory="],
            ["--report="], ["--keyring-items", "0"], ["--keyring-items", typed], [typed],
        ])
    func mistakesAreOneLine(_ words: [String]) throws {
        expectOneLine(try Sandbox().run(arguments: ["benchmark"] + words), status: 64, hiding: [typed])
    }

    /// The lines of the directory's name are no paths of their own. A directory that is named like the first
    /// line belongs to the user and stays as it was.
    @Test func aDirectoryMayHaveLines() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.shell(
            """
            mkdir -p top $'top\nbelow'; echo mine >top/file
            "$V" benchmark --directory $'top\nbelow' --backend agent --items 1 --seconds 3 >table & child=$!
            until compgen -G $'top\nbelow/.scratch-*/run/agent.sock' >/dev/null || ! kill -0 "$child"; do :; done
            kill -KILL "$(pgrep --parent "$child" --full -- --keep-scratch)"
            wait "$child"; echo "$?"; find top $'top\nbelow' -mindepth 1
            """)
        #expect(outcome.text == "0\ntop/file\n", "\(outcome.text) \(outcome.error)")
    }

    @Test func whereNothingCanBeWritten() throws {
        let sandbox = try Sandbox()
        let file = try sandbox.file("file", "")
        let outcome = try sandbox.run(arguments: ["benchmark", "--directory", "\(file)/below"] + Self.small)
        expectOneLine(outcome, status: 1)
        let closed = try sandbox.run(
            "benchmark", "--backend", "memory", "--items", "1", "--samples", "1", output: .path("/dev/full"))
        #expect(closed.status == 1)
        expectOneLine(closed, status: 1)
        #expect(try sandbox.shell("ls -A").text == "file\n")
    }

    /// The report of a measurement that took minutes is not lost when the table cannot be written.
    @Test func theReportIsThereWhenTheTableIsNot() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run(
            "benchmark", "--backend", "memory", "--items", "1", "--samples", "1", "--report",
            "\(sandbox.home)/page.html",
            output: .path("/dev/full"))
        expectOneLine(outcome, status: 1)
        #expect(try sandbox.shell("tail -n 1 page.html").text.contains("</html>"))
    }

    @Test func aKeyringThatIsNotThere() throws {
        let sandbox = try Sandbox()
        sandbox.environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=\(sandbox.home)/no-bus"
        let outcome = try sandbox.run(arguments: ["benchmark", "--backend", "secret-service"] + Self.small)
        expectOneLine(outcome, status: 8)
        #expect(outcome.error.contains("secret-service: "))
        #expect(try sandbox.shell("find . -mindepth 1").output.isEmpty)
    }

    /// Another program than `vaultctl` starts the benchmark, and asks for nothing.
    @Test func theProgramAloneSaysWhoStartsIt() throws {
        let outcome = try Sandbox().shell("\"$V-benchmark\"")
        expectOneLine(outcome, status: 64)
        #expect(outcome.error.contains("vaultctl benchmark"))
    }

    @Test func withoutTheProgramThatMeasures() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.shell(
            "cp \"$V\" alone && ./alone benchmark; echo $?; ./alone benchmark --backend agent; echo $?")
        #expect(outcome.text == "8\n8\n")
        #expect(
            outcome.error.contains(
                "vaultctl: the program that measures was not found: install vaultctl-benchmark")
                && outcome.error.contains("vaultctl: the agent's program was not found: "), "\(outcome.error)"
        )
    }

    /// At whatever moment, and whatever is under way: a vault that is filled, an agent that holds one, calls that are timed.
    @Test(arguments: ["INT", "TERM", "HUP", "KILL"], ["Filling", "agent-0.vault", "run/agent.sock"])
    func interruptedItLeavesNothing(_ signal: String, _ moment: String) throws {
        let sandbox = try Sandbox()
        let place = moment == "Filling" ? "file-0.vault" : moment
        let items = moment == "Filling" ? "10000000" : "10"
        let outcome = try sandbox.shell(
            """
            export XDG_DATA_HOME="$PWD/data"
            # Without job control, what runs in the background ignores Ctrl-C.
            set -m
            "$V" benchmark --items \(items) --value-size 16 --seconds 3000 >figures 2>errors & child=$!
            until compgen -G "data/tokenvault/.scratch-*/\(place)" >/dev/null || ! kill -0 "$child"; do :; done
            kill -\(signal) "$child"; wait "$child" 2>/dev/null; echo $?
            # What a killed one could not do is done by a process of its, in its own time.
            if [[ \(signal) == KILL ]]; then while [[ -e data ]]; do :; done; fi
            cat figures errors; rm figures errors; find . -mindepth 1
            while pgrep --full "$PWD/data" >/dev/null; do :; done
            """)
        let numbers = ["INT": 130, "TERM": 143, "HUP": 129, "KILL": 137]
        #expect(outcome.text == "\(numbers[signal] ?? 0)\n", "\(outcome.text) \(outcome.error)")
    }

    /// What went on in the next line would stay there.
    @Test func theProgressFitsIntoALine() throws {
        let sandbox = try Sandbox()
        let terminal = try PseudoTerminal(
            sandbox, ["benchmark", "--backend", "memory", "--items", "1", "--seconds", "1"], type: "xterm",
            columns: 20)
        try terminal.expect("Measuring 1 items …")
        #expect(try terminal.end() == 0)
    }

    @Test func controlCAtTheTerminalLeavesNothing() throws {
        let sandbox = try Sandbox()
        let terminal = try PseudoTerminal(sandbox, ["benchmark", "--seconds", "3000"], type: "xterm")
        try terminal.expect("Measuring 100 items")
        try terminal.type("\u{3}")
        #expect(try terminal.end() == 128 + SIGINT)
        #expect(try sandbox.shell("find . -mindepth 1").output.isEmpty)
    }
}

/// What no line repeats.
private let typed = "fake-secret-typed-by-mistake"
