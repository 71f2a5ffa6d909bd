import SystemPackage
import Testing
import TokenVault

/// Real processes that write, and one that observes.
@Suite(.timeLimit(.minutes(20))) struct ObservingProcessesTests {
    private func last(_ output: String) throws -> [Substring: Substring] {
        var known: [Substring: Substring] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ")
            try #require(words.count == 2, "\(line)")
            known[words[0]] = words[1]
        }
        return known
    }

    @Test(arguments: 0..<4) func eightWritersAreSeenByAnother(_ round: Int) async throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let state = sandbox.path.appending("state").string
        var ready = FileTokenStorage(vault, service: "ready").changes().makeAsyncIterator()
        let observer = try Child(
            testProgram("VaultObserver"), ["observe", sandbox.vault.string, state],
            output: sandbox.path.appending("observed"))
        guard case .stored("observer", _) = await ready.next() else {
            Issue.record("the observer did not start")
            return
        }
        let writers = try (0..<8).map { number in
            try Child(
                testProgram("VaultObserver"),
                ["write", sandbox.vault.string, state, "writer\(number)", "30"],
                output: sandbox.path.appending("written-\(number)"))
        }
        var written: [Substring: Substring] = [:]
        for writer in writers {
            let status = writer.wait()
            let output = try writer.readOutput()
            try #require(status == 0, "\(output)")
            try written.merge(last(output)) { $1 }
        }
        let end = try vault.storage(service: "watched").store(token: "x", for: "end")
        written["end"] = Substring(String(end.rawValue))
        let status = observer.wait()
        let output = try observer.readOutput()
        try #require(status == 0, "\(output)")
        // An item that the observer never saw counts as gone.
        let observed = try last(output)
        for (key, generation) in written {
            #expect(observed[key] ?? "gone" == generation, "\(key)")
        }
        #expect(Set(observed.keys).isSubset(of: written.keys))
    }
}
