import SystemPackage
import TestLanes
import Testing

/// `vaultctl benchmark` on a real keyring measures the requested sizes, and deletes its items.
@Suite(.tags(.desktop, .endurance), .from(.all)) struct KeyringBenchmarkTests {
    private let desktop: PrivateDesktop

    init() throws { desktop = try PrivateDesktop.withKeyring() }

    /// What `vaultctl` prints in the keyring; `nil` when it fails.
    private func keyring(_ words: String...) throws -> String? {
        try desktop.run([vaultctl] + words + ["--backend", "secret-service"])
    }

    @Test func aBenchmarkLeavesNothing() throws {
        let table = try keyring("benchmark", "--items", "3", "--samples", "3")
        #expect(table?.contains("secret-service") == true)
        #expect(try keyring("list", "--all-services") == "")
    }

    /// A keyring rewrites all its items at each store, so its size has a limit of its own beside a larger vault.
    @Test func aBenchmarkOfAKeyringGoesNoFurtherThanAskedFor() throws {
        let outcome = try keyring(
            "benchmark", "--backend", "memory", "--items", "2", "--items", "5", "--keyring-items", "4",
            "--samples", "3",
            "--json")
        let rows = try #require(outcome).split(separator: "}").map(String.init)
        func has(_ backend: String, _ items: Int) -> Bool {
            rows.contains { $0.contains("\"backend\":\"\(backend)\"") && $0.contains("\"items\":\(items),") }
        }
        #expect(has("secret-service", 2) && has("memory", 2) && has("memory", 5) && !has("secret-service", 5))
    }

    /// A keyring that locks during the measurement deletes nothing. The error names the command that removes the items.
    @Test func aBenchmarkThatCannotDeleteSaysWhatStays() throws {
        let place = try startBenchmark()
        _ = try desktop.tell("lock")
        while contents(of: FilePath("\(place).status")) == nil {}
        let said = contents(of: FilePath("\(place).said")) ?? ""
        #expect(contents(of: FilePath("\(place).status")) != "0\n", "\(said)")
        let advice = try #require(
            said.firstRange(of: "\"vaultctl delete --all --yes --backend secret-service "))
        _ = try desktop.tell("unlock")
        #expect(try desktop.tell("items").count >= 3)
        let command = said[advice.lowerBound...].dropFirst().prefix { $0 != "\"" }
        #expect(
            try desktop.run("bash", "-c", "vaultctl() { '\(vaultctl)' \"$@\"; }; \(command)") != nil)
        #expect(try desktop.tell("items") == [""])
    }

    /// Both the shell and the kernel send SIGHUP when a terminal closes. A repeated SIGHUP does not skip the cleanup.
    @Test func aBenchmarkWhoseTerminalIsClosedLeavesNothing() throws {
        let place = try startBenchmark()
        let process = contents(of: FilePath("\(place).process")) ?? ""
        #expect(try desktop.run("bash", "-c", "for _ in {1..50}; do kill -HUP $0 || :; done", process) != nil)
        while contents(of: FilePath("\(place).status")) == nil {}
        #expect(contents(of: FilePath("\(place).status")) == "129\n")
        #expect(contents(of: FilePath("\(place).said")) == "")
        #expect(try desktop.tell("items") == [""])
    }

    /// A second signal ends the program at once, even if the keyring does not answer.
    @Test func aSecondSignalEndsABenchmarkWhoseKeyringHangs() throws {
        let place = try startBenchmark()
        try desktop.tell("pause_keyring")
        defer { _ = try? desktop.tell("resume_keyring") }
        let process = contents(of: FilePath("\(place).process")) ?? ""
        #expect(try desktop.run("bash", "-c", "kill -HUP $0; kill -TERM $0", process) != nil)
        while contents(of: FilePath("\(place).status")) == nil {}
        #expect(contents(of: FilePath("\(place).status")) == "143\n")
        let said = contents(of: FilePath("\(place).said")) ?? ""
        #expect(said.contains("--backend secret-service --service 'vaultctl benchmark "), "\(said)")
    }

    /// Starts a benchmark and returns once the keyring has items. Returns the common path of the files for its standard error
    /// (`.said`), process (`.process`) and exit status (`.status`).
    private func startBenchmark() throws -> String {
        let place = "\(desktop.path)/benchmark"
        _ = try desktop.run(
            "bash", "-c",
            "exec >/dev/null 2>&1; (\"$0\" benchmark --backend secret-service --items 3 --seconds 3000 2>$1.said & "
                + "echo $! >$1.process; wait $!; echo $? >$1.new; mv $1.new $1.status) &", vaultctl, place)
        while try desktop.tell("items").count < 3 {
            let status = contents(of: FilePath("\(place).status"))
            let said = contents(of: FilePath("\(place).said"))
            try #require(status == nil, "it ended: \(said ?? "")")
        }
        return place
    }
}
