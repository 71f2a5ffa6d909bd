import Glibc
import TestLanes
import Testing

/// Export and import, as people and scripts use them. Deriving the export's key costs the better part of a
/// second each time.
@Suite(.tags(.programs), .from(.usual)) struct ExportCommandTests {
    @Test func anExportMovesToAnotherVault() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "here", input: "fake-here")
        _ = try sandbox.run("store", "portable", "--policy", "when-unlocked", input: "fake-portable")
        let words = try sandbox.file("export.txt", "fake words\n")
        let made = try sandbox.run(
            "export", "\(sandbox.home)/tokens.export", "--export-passphrase-file", words, "--json")
        #expect(made.status == 0 && made.text == #"{"items":1,"staying":1}"# + "\n")
        #expect(
            made.error
                == "vaultctl: note: items left behind, because they may not leave this device: 1\n")
        // An existing file is never overwritten.
        expectOneLine(
            try sandbox.run("export", "\(sandbox.home)/tokens.export", "--export-passphrase-file", words),
            status: 9)
        expectOneLine(
            try sandbox.run(
                "export", "\(sandbox.home)/all.export", "--all-or-nothing", "--export-passphrase-file", words),
            status: 6)

        // Exports through a pipe into another vault.
        let other = "\(sandbox.home)/other.vault"
        #expect(try sandbox.run("init", "--vault", other).status == 0)
        let piped = try sandbox.shell(
            """
            "$V" import - --vault other.vault --export-passphrase-file export.txt --json <tokens.export
            """)
        #expect(piped.status == 0, "\(piped.error)")
        #expect(piped.text == #"{"added":1,"replaced":0,"skipped":0,"unchanged":0}"# + "\n")
        #expect(try sandbox.run("retrieve", "portable", "--vault", other).text == "fake-portable")
        #expect(try sandbox.run("retrieve", "here", "--vault", other).status == 3)

        _ = try sandbox.run("store", "portable", "--vault", other, input: "its-own-fake")
        expectOneLine(
            try sandbox.run(
                "import", "\(sandbox.home)/tokens.export", "--vault", other, "--export-passphrase-file", words
            ),
            status: 9, hiding: ["its-own-fake", "fake-portable"])
    }

    @Test func mistakesAreTold() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("export.txt", "fake words\n")
        let empty = try sandbox.file("empty.txt", "\n")
        expectOneLine(
            try sandbox.run("import", "\(sandbox.home)/nowhere", "--export-passphrase-file", words), status: 8
        )
        expectOneLine(
            try sandbox.run("import", sandbox.vault, "--export-passphrase-file", words), status: 7)
        expectOneLine(
            try sandbox.run("import", "/dev/null", "--export-passphrase-file", words), status: 7)
        expectOneLine(
            try sandbox.run("export", "\(sandbox.home)/x", "--export-passphrase-file", empty), status: 64)
        expectOneLine(
            try sandbox.run(
                "import", "x", "--on-conflict", "fake-rule", "--export-passphrase-file", words),
            status: 64, hiding: ["fake-rule"])
        expectOneLine(try sandbox.run("export", "\(sandbox.home)/x", "--no-input"), status: 5)
        expectOneLine(try sandbox.run("export", "-", "--json", "--export-passphrase-file", words), status: 64)
        let full = try sandbox.run(
            "export", "-", "--export-passphrase-file", words, output: .path("/dev/full"))
        expectOneLine(full, status: 1)
    }
}

/// `import --format ndjson`: what other programs kept, one object a line.
@Suite(.tags(.programs), .from(.usual)) struct ImportLinesTests {
    @Test func linesAreStoredAsOneCommit() throws {
        let sandbox = try Sandbox.withVault()
        let lines = """
            {"service":"a","key":"text","value":"fake-1","label":"a label","attributes":{"x":"y"},\
            "policy":"when-unlocked","expires":"2030-01-01T00:00:00Z"}

            {"key":"bytes","valueBase64":"AP8KDQ=="}
            {"service":"a","key":"e\u{301}","value":"","generation":7,"created":"2020-01-01T00:00:00Z"}\r

            """
        let done = try sandbox.run(
            "import", "--format", "ndjson", "-", "--service", "other", "--json", input: lines)
        #expect(done.status == 0, "\(done.error)")
        #expect(done.text == #"{"added":3,"replaced":0,"skipped":0,"unchanged":0}"# + "\n")
        let text = try sandbox.run("retrieve", "text", "--service", "a", "--json").text
        #expect(text.contains(#""value":"fake-1","policy":"when-unlocked","label":"a label","#))
        #expect(
            text.contains(#""attributes":{"x":"y"}"#) && text.contains(#""expires":"2030-01-01T00:00:00Z""#))
        #expect(try sandbox.run("retrieve", "bytes", "--service", "other").output == [0, 255, 10, 13])
        #expect(try sandbox.run("retrieve", "e\u{301}", "--service", "a").output == [])
        // The import is one commit, so all items have one generation.
        let generations = try sandbox.run("list", "--all-services", "--json").text
            .matches(of: /"generation":(\d+)/).map { String($0.output.1) }
        #expect(generations.count == 3 && Set(generations).count == 1)
        // An import accepts the JSON that another vault printed.
        let again = try sandbox.run(
            "import", "--format", "ndjson", "-", "--on-conflict", "replace", "--json", input: text)
        #expect(again.text == #"{"added":0,"replaced":0,"skipped":0,"unchanged":1}"# + "\n")
    }

    @Test(arguments: [
        #"{"key":"k"}"#, #"{"value":"fake-secret"}"#,
        #"{"key":"k","value":"fake-secret","valueBase64":"AA=="}"#,
        #"{"key":"k","valueBase64":"fake-secret!"}"#, #"{"key":"k","value":7}"#, "fake-secret", "[]",
        #"{"key":"k","value":"fake-secret","policy":"fake-policy"}"#,
        #"{"key":"k","value":"fake-secret","expires":"fake-time"}"#,
        #"{"key":"k","service":7,"value":"fake-secret"}"#, #"{"key":"good","value":"fake-secret"}"#,
        "{\"key\":\"k\",\"value\":\"fake-secret",
    ])
    func aLineThatIsNoItemImportsNothing(_ line: String) throws {
        let sandbox = try Sandbox.withVault()
        let failed = try sandbox.run(
            "import", "--format", "ndjson", "-", input: #"{"key":"good","value":"fake-good"}"# + "\n" + line)
        expectOneLine(failed, status: failed.status, hiding: ["fake-secret", "fake-policy", "fake-time"])
        #expect([1, 64].contains(failed.status), "\(failed.error)")
        #expect(try sandbox.run("retrieve", "good").status == 3)
    }

    @Test func aFieldThatNoItemHasIsNamedOrCounted() throws {
        let sandbox = try Sandbox.withVault()
        let lines =
            #"{"key":"one","value":"fake-1","created":"2026-01-01T00:00:00Z"}"# + "\n"
            + #"{"key":"two","value":"fake-2","exipres":"2027-01-01T00:00:00Z","x":[1]}"# + "\n"
        let refused = try sandbox.run("import", "--format", "ndjson", "-", input: lines)
        expectOneLine(refused, status: 64)
        #expect(
            refused.error.contains(#"line 2 has the unknown field "exipres""#)
                && refused.error.contains("--ignore-unknown"), "\(refused.error)")
        #expect(try sandbox.run("retrieve", "one").status == 3)
        let taken = try sandbox.run("import", "--format", "ndjson", "-", "--ignore-unknown", input: lines)
        #expect(taken.status == 0 && taken.error == "vaultctl: note: ignored fields: 2\n")
        #expect(try sandbox.run("retrieve", "two").text == "fake-2")
        expectOneLine(try sandbox.run("import", "file", "--ignore-unknown"), status: 64)
    }

    @Test func aKeyWithAnotherValueIsAConflict() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake-old")
        let lines = #"{"key":"new","value":"fake-new"}"# + "\n" + #"{"key":"k","value":"fake-other"}"# + "\n"
        expectOneLine(try sandbox.run("import", "--format", "ndjson", "-", input: lines), status: 9)
        #expect(try sandbox.run("retrieve", "new").status == 3)
        let skipped = try sandbox.run(
            "import", "--format", "ndjson", "-", "--on-conflict", "skip", input: lines)
        #expect(skipped.status == 0)
        #expect(skipped.error == "vaultctl: note: items that keep the value of this vault: 1\n")
        #expect(try sandbox.run("retrieve", "k").text == "fake-old")
        #expect(try sandbox.run("retrieve", "new").text == "fake-new")
    }

    @Test func whatExpiresInAWhileIsTheSameWhenItIsReadBack() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", "--expires", "1h", input: "fake")
        let line = try sandbox.run("retrieve", "k", "--json").text
        let again = try sandbox.run("import", "--format", "ndjson", "-", "--json", input: line)
        #expect(again.status == 0 && again.text.contains("\"unchanged\":1"), "\(again.text)\(again.error)")
    }
}
