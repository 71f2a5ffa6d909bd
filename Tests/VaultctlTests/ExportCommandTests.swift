import Glibc
import Testing

/// Export and import, as people and scripts use them. Deriving the export's key costs the better part of a
/// second each time.
@Suite struct ExportCommandTests {
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
                == "vaultctl: note: items that stay behind, since they may not leave this device: 1\n")
        // What is there is never overwritten.
        expectOneLine(
            try sandbox.run("export", "\(sandbox.home)/tokens.export", "--export-passphrase-file", words),
            status: 9)
        expectOneLine(
            try sandbox.run(
                "export", "\(sandbox.home)/all.export", "--all-or-nothing", "--export-passphrase-file", words),
            status: 6)

        // Through a pipe into another vault.
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
