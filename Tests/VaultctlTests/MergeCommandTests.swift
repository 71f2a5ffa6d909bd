import TestLanes
import Testing

/// `merge` of a copy that another device wrote to while the vault was written to as well.
@Suite(.tags(.programs), .from(.usual)) struct MergeCommandTests {
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
        let notes = merged.error.split(separator: "\n")
        #expect(
            notes.count == 2
                && notes.first == "vaultctl: note: the previous file is kept as \(sandbox.vault).replaced"
                && notes.last?.contains("to settle a conflict, delete the key") == true, "\(notes)")
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

    /// A synchronising program left what this device has seen beside the vault.
    @Test(arguments: [["retrieve", "both"], ["unlock"]]) func theErrorNamesTheCopyBesideTheVault(
        _ words: [String]
    ) throws {
        // If unlocking starts an agent, the agent belongs to this test and ends with it.
        sandbox.environment["XDG_RUNTIME_DIR"] = sandbox.home
        sandbox.environment["DBUS_SYSTEM_BUS_ADDRESS"] = "unix:path=/no/bus"
        defer { _ = try? sandbox.run("agent", "--stop") }
        let left = "\(sandbox.vault.dropLast(".vault".count)) (conflicted copy 2026-11-28).vault"
        _ = try sandbox.shell("cp -p '\(sandbox.vault)' '\(left)'; cp -p copy '\(sandbox.vault)'")
        let refused = try sandbox.run(arguments: words)
        expectOneLine(refused, status: 7)
        let command = try #require(refused.error.firstMatch(of: #/"vaultctl (merge '[^']+')"/#))
        #expect(command.1 == "merge '\(left)'")
        let merged = try sandbox.shell("\"$V\" \(command.1)")
        #expect(merged.status == 0, "\(merged.error)")
        #expect(try sandbox.run("retrieve", "both").text == "fake theirs")
    }

    /// A conflict is settled by what the note says, and the other device takes the choice over.
    @Test func aConflictIsSettledWithTheCopysValue() throws {
        #expect(try sandbox.run("merge", copy).status == 0)
        let settled = try sandbox.shell(
            """
            moved=$("$V" list | grep conflict)
            "$V" delete both && "$V" rename "$moved" both
            "$V" merge '\(sandbox.vault)' --vault copy --state-dir other
            "$V" retrieve both --vault copy --state-dir other
            """)
        #expect(settled.status == 0 && settled.text.hasSuffix("fake theirs"), "\(settled)")
        #expect(settled.text.contains("conflicts: 0"), "\(settled.text)")
    }

    /// Of the names of another device's items, nothing is known here.
    @Test func itemsOfOtherDevicesAreCounted() throws {
        _ = try sandbox.shell(
            """
            "$V" device enrol --vault copy --state-dir other
            printf 'fake own' | "$V" store own --vault copy --state-dir other
            """)
        let merged = try sandbox.run("merge", copy)
        #expect(merged.status == 0 && merged.text.contains("taken: 2,"), "\(merged)")
        #expect(
            merged.error.contains("note: 1 item taken or deleted can be read only by other devices"),
            "\(merged.error)")
    }

    @Test func whichFileAKeyDoesNotOpenIsSaid() throws {
        let replaced = try sandbox.shell(
            """
            "$V" slot add key-file new.key --scope all --vault copy --state-dir other &&
                "$V" slot remove 1 --key-file new.key --vault copy --state-dir other
            """)
        try #require(replaced.status == 0, "\(replaced)")
        let merged = try sandbox.run("merge", copy)
        expectOneLine(merged, status: 5)
        #expect(
            merged.error.contains("the unlock method opens the vault, but not the copy: "), "\(merged.error)")
        let other = try sandbox.run("merge", copy, "--key-file", "\(sandbox.home)/new.key")
        expectOneLine(other, status: 5)
        #expect(!other.error.contains("but not the copy"), "\(other.error)")
    }

    @Test(arguments: ["key", "passphrase"]) func aCopyIsOpenedWithItsOwnMethod(kind: String) throws {
        let replaced = try sandbox.shell(
            """
            echo "fake words" >words; chmod 600 words
            if [ \(kind) = key ]; then "$V" slot add key-file new --scope all --vault copy --state-dir other
            else "$V" slot add passphrase --new-passphrase-file words --vault copy --state-dir other; cp words new; fi &&
                "$V" slot remove 1 --\(kind)-file new --vault copy --state-dir other
            """)
        try #require(replaced.status == 0, "\(replaced)")
        let option = "--copy-\(kind)-file"
        let merged = try sandbox.run("merge", copy, option, "\(sandbox.home)/new")
        #expect(merged.status == 0 && merged.text.contains("taken: "), "\(merged)")
        expectOneLine(try sandbox.run("merge", copy, option, "\(sandbox.home)/missing"), status: 1)
        let wrong = try sandbox.file("wrong", "fake words that open nothing: 0123456789abcdef")
        let refused = try sandbox.run("merge", copy, option, wrong)
        expectOneLine(refused, status: 5)
        #expect(
            refused.error.contains("the copy's passphrase or key is wrong: give what opened the copy"),
            "\(refused)")
        let both = try sandbox.run("merge", copy, "--copy-key-file", "a", "--copy-passphrase-file", "b")
        expectOneLine(both, status: 64)
    }

    @Test func aCopyOfAnotherVaultIsToldAsThatWithoutAKey() throws {
        let made = try sandbox.shell(
            #"V=$V; "$V" init --vault second --key-file another.key --state-dir other"#)
        try #require(made.status == 0, "\(made)")
        let merged = try sandbox.run("merge", "\(sandbox.home)/second")
        expectOneLine(merged, status: 7)
        #expect(merged.error.contains("a copy of another vault"), "\(merged.error)")
    }

    @Test func aCopyThatIsNoVaultIsToldAsThat() throws {
        _ = try sandbox.shell("echo fake >words; chmod 600 words")
        let merged = try sandbox.run("merge", "\(sandbox.home)/words")
        expectOneLine(merged, status: 8)
        #expect(merged.error == "vaultctl: the copy is not a vault: check its path\n", "\(merged.error)")
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
