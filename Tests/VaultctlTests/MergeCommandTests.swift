import Testing

/// `merge` of a copy that another device wrote to while the vault was written to as well.
@Suite struct MergeCommandTests {
    private let sandbox: Sandbox
    private var copy: String { "\(sandbox.home)/copy" }

    init() throws {
        sandbox = try Sandbox.withVault()
        _ = try sandbox.shell(
            """
            for key in both gone; do printf "fake $key" | "$V" store "$key" --policy when-unlocked; done
            cp -p '\(sandbox.vault)' copy
            other() { "$V" "$@" --vault copy --state-dir other; }
            printf 'fake theirs' | other store both --policy when-unlocked
            printf 'fake new' | other store new --policy when-unlocked
            other delete gone
            printf 'fake ours' | "$V" store both
            """)
    }

    @Test func aCopyIsMergedAndListed() throws {
        let before = try sandbox.shell("cksum <'\(sandbox.vault)'").text
        let rehearsal = try sandbox.run("merge", copy, "--dry-run")
        #expect(rehearsal.status == 0 && rehearsal.error.isEmpty, "\(rehearsal.error)")
        #expect(try sandbox.shell("cksum <'\(sandbox.vault)'").text == before)
        let merged = try sandbox.run("merge", copy)
        #expect(merged.status == 0, "\(merged.error)")
        #expect(merged.error == "vaultctl: note: the previous file is kept as \(sandbox.vault).replaced\n")
        let lines = merged.text.split(separator: "\n").map(String.init)
        #expect(
            lines.count == 4 && lines.dropLast(2) == ["taken: default: new", "deleted: default: gone"]
                && lines.last == "taken: 1, deleted: 1, conflicts: 1, left: 0, items: 3",
            "\(lines)")
        let prefix = "conflict: default: both: the copy's value is "
        let line = try #require(lines.dropLast().last)
        #expect(line.hasPrefix(prefix + "both (conflict "), "\(line)")
        #expect(try sandbox.run("retrieve", "both").text == "fake ours")
        #expect(try sandbox.run("retrieve", String(line.dropFirst(prefix.count))).text == "fake theirs")
        #expect(try sandbox.run("retrieve", "new").text == "fake new")
        expectOneLine(try sandbox.run("retrieve", "gone"), status: 3)
        #expect(try sandbox.run("verify").status == 0)
        let again = try sandbox.run("merge", copy, "--json")
        #expect(
            again.text.hasPrefix(#"{"dryRun":false,"upToDate":true,"items":3,"taken":0,"#)
                && again.text.hasSuffix(
                    #""takenItems":[],"deletedItems":[],"conflicts":[],"notes":[]}"# + "\n"),
            "\(again.text)")
    }

    /// Characters that turn, hide or tag the text around them.
    @Test func aConflictIsPrintedWithoutCharactersThatATerminalObeys() throws {
        let hidden = "a\u{202e}\u{200b}\u{e0041}b"
        for (value, more) in [
            ("ours", []), ("theirs", ["--vault", copy, "--state-dir", "\(sandbox.home)/other"]),
        ] {
            let words =
                ["store", hidden, "--service", hidden, "--policy", "when-unlocked", "--binary"] + more
            let stored = try Child.run(
                words.map { Array($0.utf8) }, environment: sandbox.environment,
                input: .bytes(Array(value.utf8)))
            #expect(stored.status == 0, "\(stored.error)")
        }
        let lines = try sandbox.run("merge", copy).text.split(separator: "\n")
        let line = lines.first {
            $0.hasPrefix("conflict: a???b: a???b: the copy's value is a???b (conflict ")
        }
        #expect(line != nil, "\(lines)")
    }

    /// The way out that the error names.
    @Test func aForkAtThePathIsMergedWithWhatThisDeviceHasSeen() throws {
        _ = try sandbox.shell("cp -p '\(sandbox.vault)' seen; cp -p copy '\(sandbox.vault)'")
        let refused = try sandbox.run("retrieve", "both")
        expectOneLine(refused, status: 7)
        #expect(refused.error.contains("\"vaultctl merge FILE\""), "\(refused.error)")
        let merged = try sandbox.run("merge", "\(sandbox.home)/seen")
        #expect(merged.status == 0, "\(merged.error)")
        #expect(try sandbox.run("retrieve", "both").text == "fake theirs")
        #expect(try sandbox.run("retrieve", "new").text == "fake new")
    }

    @Test func mistakesAreOneLineAndChangeNothing() throws {
        expectOneLine(try sandbox.run("merge", "missing"), status: 8)
        expectOneLine(try sandbox.run("merge", ""), status: 64)
        expectOneLine(try sandbox.run("merge"), status: 64)
        expectOneLine(try sandbox.run("merge", copy, "--read-only"), status: 1)
        expectOneLine(try sandbox.run("merge", sandbox.vault), status: 64)
        expectOneLine(try sandbox.run("merge", copy, "--backend", "memory"), status: 64)
        _ = try sandbox.shell("\"$V\" init --vault stranger")
        let stranger = try sandbox.run("merge", "\(sandbox.home)/stranger")
        expectOneLine(stranger, status: 7)
        #expect(stranger.error.contains("vaultctl import"), "\(stranger.error)")
        #expect(try sandbox.run("retrieve", "both").text == "fake ours")
    }
}
