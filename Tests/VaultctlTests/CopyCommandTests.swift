import TestLanes
import Testing

/// `restore`, `adopt` and `salvage` on the command line.
@Suite(.tags(.programs), .from(.usual)) struct CopyCommandTests {
    private let sandbox: Sandbox
    private var vault: String { "\(sandbox.home)/.local/share/tokenvault/default.vault" }

    init() throws {
        sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "first")
        _ = try sandbox.shell("cp -p .local/share/tokenvault/default.vault backup")
        _ = try sandbox.run("store", "k", input: "second")
    }

    @Test func anOlderCopyIsPutBackOnPurpose() throws {
        _ = try sandbox.shell("cp -p .local/share/tokenvault/default.vault newest; cp -p backup '\(vault)'")
        let refused = try sandbox.run("retrieve", "k")
        expectOneLine(refused, status: 7)
        #expect(refused.error.contains("vaultctl restore"))
        expectOneLine(try sandbox.run("restore", "\(sandbox.home)/newest"), status: 5)
        let restored = try sandbox.run("restore", "\(sandbox.home)/newest", "--yes")
        #expect(restored.status == 0 && restored.output.isEmpty)
        #expect(
            restored.error == "vaultctl: note: the previous file is kept as \(vault).replaced\n",
            "\(restored.error)")
        #expect(try sandbox.run("retrieve", "k").text == "second")
        let again = try sandbox.run("restore", "\(sandbox.home)/backup", "--yes", "--json")
        #expect(
            again.error.contains("note: the copy lacks changes that this device has seen"), "\(again.error)")
        #expect(again.text == "{\"items\":1,\"replaced\":\"\(vault).replaced-2\",\"notes\":[]}\n")
        #expect(try sandbox.run("retrieve", "k").text == "first")
        expectOneLine(try sandbox.run("restore", "\(sandbox.home)/missing", "--yes"), status: 8)
        expectOneLine(try sandbox.run("restore", "", "--yes"), status: 64)
        expectOneLine(try sandbox.run("restore", "\(sandbox.home)/vault.key", "--yes"), status: 8)
    }

    @Test func aPersonIsAsked() throws {
        let terminal = try PseudoTerminal(
            sandbox, ["restore", "\(sandbox.home)/backup", "--key-file", "\(sandbox.home)/vault.key"])
        try terminal.expect("Put the copy in the place of \(vault)? Type yes to go on:")
        try terminal.type("yes\r")
        try terminal.expect("Restored a vault with 1 item.")
        #expect(try terminal.end() == 0)
        #expect(try sandbox.run("retrieve", "k").text == "first")
    }

    @Test func oneVaultAtTwoPaths() throws {
        let copy = "\(sandbox.home)/backup"
        let refused = try sandbox.run("retrieve", "k", "--vault", copy)
        expectOneLine(refused, status: 9)
        #expect(refused.error.contains("vaultctl adopt") && refused.error.contains(vault))
        // Commands that only read accept a copy.
        #expect(try sandbox.run("verify", "--vault", copy).status == 0)
        #expect(
            try sandbox.run("status", "--vault", copy).text.contains("this is a copy: the vault is \(vault)"))
        let words = try sandbox.file("words", "fake export words")
        #expect(
            try sandbox.run(
                "export", "\(sandbox.home)/out", "--vault", copy, "--export-passphrase-file", words
            )
            .status == 0)
        expectOneLine(try sandbox.run("adopt", "--vault", copy), status: 5)
        let adopted = try sandbox.run("adopt", "--vault", copy, "--yes")
        #expect(
            adopted.status == 0
                && adopted.error == """
                    vaultctl: note: this file lacks changes that this device has seen
                    vaultctl: note: \(vault) is a copy from now on

                    """,
            "\(adopted.error)")
        #expect(try sandbox.run("retrieve", "k", "--vault", copy).text == "first")
        expectOneLine(try sandbox.run("retrieve", "k"), status: 9)
    }

    /// The commands of the article: what may not leave the device comes out of a conflict's copy as well.
    @Test func aConflictsCopyIsMerged() throws {
        let directory = "\(sandbox.home)/.local/share/tokenvault"
        let copy = "\(directory)/default.sync-conflict-20261121-190753-ABCDEFG.vault"
        _ = try sandbox.run("store", "only here", input: "kept")
        _ = try sandbox.shell("cp -p '\(vault)' '\(copy)'")
        // Each file gets an item that the other file lacks.
        _ = try sandbox.run("store", "k", input: "third")
        #expect(try sandbox.run("adopt", "--vault", copy, "--yes").status == 0)
        for (key, service, policy) in [
            ("there", "s", "when-unlocked-this-device-only"), ("k", "default", "when-unlocked"),
        ] {
            let stored = try sandbox.run(
                "store", key, "--service", service, "--policy", policy, "--vault", copy, input: "from there")
            #expect(stored.status == 0, "\(stored.error)")
        }
        #expect(try sandbox.run("adopt", "--yes").status == 0)

        let merged = try sandbox.shell(
            """
            export VAULT='\(vault)' COPY='\(copy)'
            PATH="$(dirname "$V"):$PATH"
            set -e
            umask 077
            vaultctl adopt --vault "$COPY" --yes
            vaultctl list --vault "$COPY" --all-services | while IFS=$'\\t' read -r service key; do
                vaultctl retrieve --vault "$COPY" --service "$service" --json -- "$key"
            done >/dev/shm/items.$$
            vaultctl adopt --vault "$VAULT" --yes
            vaultctl import --vault "$VAULT" --format ndjson /dev/shm/items.$$ --on-conflict skip --json
            shred -u /dev/shm/items.$$
            rm "$COPY"
            """)
        #expect(merged.status == 0, "\(merged.error)")
        #expect(
            merged.text == #"{"added":1,"replaced":0,"skipped":1,"unchanged":1}"# + "\n", "\(merged.text)")
        #expect(try sandbox.run("retrieve", "there", "--service", "s").text == "from there")
        #expect(try sandbox.run("info", "there", "--service", "s").text.contains("this-device-only"))
        #expect(try sandbox.run("retrieve", "k").text == "third")
        #expect(try sandbox.run("verify").status == 0)
        #expect(try !sandbox.run("status").text.contains("is another file of this vault"))
    }

    @Test func aVaultThatIsGoneIsNotAbsent() throws {
        _ = try sandbox.shell("mv '\(vault)' away")
        for arguments in [
            ["status"], ["retrieve", "k"], ["adopt", "--yes"], ["verify"], ["destroy", "--yes"],
        ] {
            let gone = try sandbox.run(arguments: arguments)
            expectOneLine(gone, status: 8)
            #expect(gone.error.contains("the vault file is gone"), "\(arguments): \(gone.error)")
            #expect(gone.error.contains("vaultctl restore") && !gone.error.contains("vaultctl init"))
        }
        let other = try sandbox.run("status", "--vault", "\(sandbox.home)/other", "--json")
        #expect(other.status == 0 && other.text.contains("\"state\":\"absent\""))
        #expect(try sandbox.run("restore", "\(sandbox.home)/backup").status == 0)
        #expect(try sandbox.run("retrieve", "k").text == "first")
    }

    @Test func aHardLinkIsToldAndKept() throws {
        _ = try sandbox.shell("ln '\(vault)' other")
        #expect(try sandbox.run("status").text.contains("another name (a hard link)"))
        for arguments in [["compact"], ["restore", "\(sandbox.home)/backup", "--yes"], ["adopt", "--yes"]] {
            let refused = try sandbox.run(arguments: arguments)
            expectOneLine(refused, status: 9)
            #expect(refused.error.contains("-xdev -samefile \(vault)"), "\(refused.error)")
        }
        #expect(try sandbox.run("retrieve", "k").text == "second")
        _ = try sandbox.shell("rm other")
        #expect(try sandbox.run("compact").status == 0)
    }

    @Test func readingOnlyReplacesNothing() throws {
        let before = try sandbox.shell("cksum < '\(vault)'; cksum < backup; ls -a .local/share/tokenvault")
            .text
        for arguments in [["restore", "\(sandbox.home)/backup", "--yes"], ["adopt", "--yes"]] {
            let refused = try sandbox.run(arguments: arguments + ["--read-only"])
            expectOneLine(refused, status: 1)
            #expect(refused.error.contains("--read-only"), "\(refused.error)")
        }
        // A salvage writes a separate file.
        #expect(try sandbox.run("salvage", "\(sandbox.home)/saved", "--read-only").status == 0)
        #expect(
            try sandbox.shell("cksum < '\(vault)'; cksum < backup; ls -a .local/share/tokenvault").text
                == before)
    }

    /// Names are bytes of others' choosing: a terminal must not take them for orders.
    @Test func noNameMakesATerminalDoSomething() throws {
        let hidden = "\u{202e}\u{200b}\u{e0041}"
        let path = "\(sandbox.home)/a\u{1b}[2Jb\u{9b}c\n\(hidden).vault"
        #expect(try sandbox.run("init", "--vault", path).status == 0)
        _ = try sandbox.shell(
            "cp -p \"\(path)\" \"${HOME}/a\u{1b}[2Jb\u{9b}c\n\(hidden)-\u{7f}\u{1b}]0;x.vault\"")
        let status = try sandbox.run("status", "--vault", path)
        #expect(status.status == 0 && status.text.contains("is another file of this vault"), "\(status.text)")
        let json = try sandbox.run("status", "--vault", path, "--json")
        let gone = try sandbox.shell("rm -r .local/state; \"$V\" adopt --vault \"\(path)\" --yes")
        for text in [status.text, status.error, json.text, json.error, gone.error, gone.text] {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let isPlain = lines.joined().unicodeScalars.allSatisfy {
                $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value)
            }
            #expect(isPlain, "\(text.debugDescription)")
        }
        for text in [status.text, status.error, gone.error, gone.text] {
            #expect(
                !text.unicodeScalars.contains { hidden.unicodeScalars.contains($0) },
                "\(text.debugDescription)")
        }
        #expect(json.text.contains("\\u001b[2J") && json.text.split(separator: "\n").count == 1)
    }

    @Test func conflictCopiesAreShown() throws {
        let name = "default.sync-conflict-20261121-190753-ABCDEFG.vault"
        _ = try sandbox.shell("cp -p backup \".local/share/tokenvault/\(name)\"")
        #expect(try sandbox.run("status").text.contains("note:        \(name) is another file of this vault"))
        #expect(try sandbox.run("status", "--json").text.contains("\"conflictingCopies\":[\"\(name)\"]"))
    }

    @Test func whatIsWholeIsSalvaged() throws {
        let out = "\(sandbox.home)/saved.vault"
        let whole = try sandbox.run("salvage", out)
        #expect(whole.status == 0 && whole.text == "saved: 1 item\n", "\(whole.error)")
        expectOneLine(try sandbox.run("salvage", out), status: 9)
        _ = try sandbox.shell("rm saved.vault")
        // Damages the last value. The value before it is whole.
        _ = try sandbox.shell(
            """
            offset=$(LC_ALL=C grep -obUaP 'TVF1' '\(vault)' | tail -1 | cut -d: -f1)
            printf 'XXXXXXXX' | dd of='\(vault)' bs=1 seek=$((offset + 200)) conv=notrunc status=none
            """)
        let damaged = try sandbox.run("retrieve", "k")
        expectOneLine(damaged, status: 7)
        #expect(damaged.error.contains("vaultctl salvage"))
        let saved = try sandbox.run("salvage", out, "--json")
        #expect(
            saved.status == 7 && saved.error.contains("saved 1 item, but something was lost in one place"))
        #expect(saved.text.contains("\"items\":1,\"mayBeOlder\":1,\"itemsLost\":0"))
        let restored = try sandbox.run("restore", out, "--yes")
        #expect(restored.status == 0, "\(restored.error)")
        #expect(try sandbox.run("retrieve", "k").text == "first")
        #expect(try sandbox.run("verify").status == 0)
    }

    @Test func whatIsMissingIsNamed() throws {
        // Each message names the missing directory rather than the vault.
        let words = try sandbox.file("words", "fake export words")
        let missing = "\(sandbox.home)/missing"
        for command in [
            ["salvage", "\(missing)/out"], ["export", "\(missing)/out", "--export-passphrase-file", words],
        ] {
            let refused = try sandbox.run(arguments: command)
            expectOneLine(refused, status: 8)
            #expect(refused.error.contains("there is no directory \(missing)"), "\(refused.error)")
        }
        let elsewhere = try sandbox.run("retrieve", "k", "--vault", "\(missing)/a.vault")
        expectOneLine(elsewhere, status: 8)
        #expect(elsewhere.error.contains(missing), "\(elsewhere.error)")
    }

}
