import Glibc
import TestLanes
import Testing
import TokenVaultPlatform

/// Prompts on a terminal, at which a script types.
@Suite(.tags(.programs), .from(.usual)) struct PromptTests {
    private static let passphrase = "fake correct horse"

    /// The first minute, as a person types it. One test: each passphrase costs the better part of a second.
    @Test func aPersonsFirstMinute() throws {
        let sandbox = try Sandbox()
        let creating = try PseudoTerminal(sandbox, ["init"])
        // The prompt comes again after an empty passphrase, and after two different ones.
        try creating.expect("New passphrase: ")
        #expect(!creating.echoes)
        try creating.type("\r")
        try creating.expect("protects nothing")
        try creating.expect("New passphrase: ")
        try creating.type("one\r")
        try creating.expect("The same again: ")
        try creating.type("another\r")
        try creating.expect("not the same")
        try creating.expect("New passphrase: ")
        // One letter is erased, and one whole line.
        try creating.type("wrong\u{15}fake correct horss\u{7f}e\r")
        try creating.expect("The same again: ")
        try creating.type("\(Self.passphrase)\r")
        // The program offers a recovery key, and shows it only here.
        try creating.expect("Type yes to do so: ")
        try creating.type("yes\r")
        let before = try creating.expect("Press return when you have it: ")
        try creating.type("\r")
        #expect(try creating.end() == 0)
        #expect(!creating.shown.contains("horse"))
        let written = try #require(before.firstMatch(of: #/Recovery key: ([0-9A-Z-]{47})/#)).output.1
        let listing = try PseudoTerminal(sandbox, ["list"])
        try listing.expect("Passphrase: ")
        try listing.type("\(written.lowercased())\r")
        #expect(try listing.end() == 0)
        #expect(!listing.shown.contains(written))

        let storing = try PseudoTerminal(sandbox, ["store", "k"])
        try storing.expect("Passphrase: ")
        try storing.type("\(Self.passphrase)\r")
        try storing.expect("Secret: ")
        #expect(!storing.echoes)
        // Longer than the 4,095 bytes that a terminal accepts as a line.
        let secret = String(repeating: "fake-secret-", count: 1_000)
        try storing.type("\(secret)\r")
        #expect(try storing.end() == 0)
        #expect(!storing.shown.contains("fake-secret"))

        let retrieving = try PseudoTerminal(sandbox, ["retrieve", "k"])
        try retrieving.expect("Passphrase: ")
        try retrieving.type("\(Self.passphrase)\r")
        #expect(try retrieving.end() == 0)
        #expect(retrieving.shown == "\n\(secret)\n")

        // With standard output in a file, the file gets neither the prompt nor a newline.
        let captured = try ScratchFile()
        let piped = try PseudoTerminal(sandbox, ["retrieve", "k"], output: captured.descriptor)
        try piped.expect("Passphrase: ")
        try piped.type("\(Self.passphrase)\r")
        #expect(try piped.end() == 0)
        #expect(try captured.contents() == Array(secret.utf8))

        // There are at most three attempts, as in other programs.
        let wrong = try PseudoTerminal(sandbox, ["retrieve", "k"])
        for number in 1...3 {
            let before = try wrong.expect("Passphrase: ")
            #expect(before.contains("Try again.") == (number > 1), "\(before)")
            try wrong.type("fake guess\r")
        }
        #expect(try wrong.end() == 5)
        #expect(!wrong.shown.contains("guess") && !wrong.shown.contains("Passphrase: "))
        let mended = try PseudoTerminal(sandbox, ["list"])
        try mended.expect("Passphrase: ")
        try mended.type("fake guess\r")
        try mended.expect("Try again.")
        try mended.expect("Passphrase: ")
        try mended.type("\(Self.passphrase)\r")
        #expect(try mended.end() == 0)
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    func theEchoIsBackAfterASignal(_ signal: Int32) throws {
        let terminal = try PseudoTerminal(try Sandbox(), ["init"])
        try terminal.expect("New passphrase: ")
        #expect(!terminal.echoes)
        try terminal.type("half a pass")
        terminal.send(signal)
        #expect(try terminal.end() == 128 + signal)
        #expect(terminal.echoes)
        #expect(!terminal.shown.contains("half"))
    }

    /// While the vault is made: it is there with what this device keeps for it, or neither is.
    @Test(arguments: [SIGINT, SIGTERM])
    func aSignalLeavesNoHalfOfAVault(_ signal: Int32) throws {
        let sandbox = try Sandbox()
        let words = try sandbox.file("words", "\(Self.passphrase)\n")
        let terminal = try PseudoTerminal(sandbox, ["init", "--passphrase-file", words], type: "xterm")
        try terminal.expect("Creating the vault")
        // The program derives the passphrase's key after this file appears.
        let state = "\(sandbox.home)/.local/state/tokenvault"
        let hasBegun = (0..<1_000_000).contains { _ in
            Self.names(in: state).contains { $0.hasSuffix(".pepper") }
        }
        try #require(hasBegun)
        terminal.send(signal)
        let status = try terminal.end()
        // On a busy machine, the signal may come too late.
        if status == 0, access(sandbox.vault, F_OK) == 0 { return }
        #expect(status == 128 + signal)
        let kept = try sandbox.shell("ls .local/state/tokenvault .local/share/tokenvault").text
        #expect(!kept.contains(".device") && !kept.contains("default.vault"), "\(kept)")
        #expect(try sandbox.run("status", "--json").text.contains(#""state":"absent""#))
    }

    private static func names(in directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
    }

    @Test func controlCEndsIt() throws {
        let terminal = try PseudoTerminal(try Sandbox(), ["init"])
        try terminal.expect("New passphrase: ")
        try terminal.type("half\u{3}")
        #expect(try terminal.end() == 128 + SIGINT)
        #expect(terminal.echoes)
    }

    @Test func aSignalThatWasSurvivedAsksAgain() throws {
        let terminal = try PseudoTerminal(try Sandbox(), ["init"])
        try terminal.expect("New passphrase: ")
        try terminal.type("half")
        // The leader of a session is not stopped, because no process could continue it. Another test covers a
        // program under a shell.
        terminal.send(SIGTSTP)
        try terminal.expect("New passphrase: ")
        #expect(!terminal.echoes)
        try terminal.type("\u{4}")
        #expect(try terminal.end() == 1)
        #expect(terminal.echoes)
        #expect(terminal.shown.contains("vaultctl: nothing was entered"))
    }

    @Test func aStoppedProgramLeavesTheEchoOn() throws {
        // The program runs under a shell with job control, as in normal use.
        let sandbox = try Sandbox()
        sandbox.environment["PS1"] = "ready> "
        let shell = try PseudoTerminal(
            sandbox, program: "/bin/bash", ["--norc", "--noprofile", "--noediting", "-i"])
        try shell.expect("ready> ")
        try shell.type("\(Child.program) init\r")
        try shell.expect("New passphrase: ")
        #expect(!shell.echoes)
        try shell.type("half\u{1a}")
        try shell.expect("Stopped")
        try shell.expect("ready> ")
        #expect(shell.echoes)
        try shell.type("fg\r")
        try shell.expect("New passphrase: ")
        #expect(!shell.echoes)
        try shell.type("\u{3}")
        try shell.expect("ready> ")
        #expect(shell.echoes)
        try shell.type("exit\r")
        _ = try shell.end()
        #expect(!shell.shown.contains("half"))
    }

    @Test func nobodyIsAskedWithNoInput() throws {
        let terminal = try PseudoTerminal(try Sandbox(), ["init", "--no-input"])
        #expect(try terminal.end() == 4)
        #expect(!terminal.shown.contains("passphrase: "))
        let sandbox = try Sandbox.withVault()
        let key = "\(sandbox.home)/vault.key"
        let store = try PseudoTerminal(sandbox, ["store", "k", "--no-input", "--key-file", key])
        #expect(try store.end() == 5)
    }

    @Test func aQuestionTimesOut() throws {
        let terminal = try PseudoTerminal(try Sandbox(), ["init", "--timeout", "0.1"])
        #expect(try terminal.end() == 10)
        #expect(terminal.echoes)
    }

    @Test func destroyingAsksForAYes() throws {
        let sandbox = try Sandbox.withVault()
        let declined = try PseudoTerminal(sandbox, ["destroy"])
        try declined.expect("Type yes to go on: ")
        try declined.type("y\r")
        #expect(try declined.end() == 5)
        #expect(access(sandbox.vault, F_OK) == 0)
        let confirmed = try PseudoTerminal(sandbox, ["destroy"])
        try confirmed.expect("Type yes to go on: ")
        try confirmed.type("yes\r")
        #expect(try confirmed.end() == 0)
        #expect(access(sandbox.vault, F_OK) != 0)
    }

    @Test func aListKeepsToTheWidthOfTheTerminal() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", String(repeating: "k", count: 200), input: "x")
        let arguments = ["list", "--key-file", "\(sandbox.home)/vault.key"]
        for columns in [60, 100] {
            let terminal = try PseudoTerminal(sandbox, arguments, columns: UInt16(columns))
            #expect(try terminal.end() == 0)
            let lines = terminal.shown.split(whereSeparator: \.isNewline)
            #expect(lines.count == 2 && lines.allSatisfy { $0.count <= columns }, "\(lines)")
            #expect(lines.last?.contains("…") ?? false && lines.last?.contains("when-unlocked") ?? false)
        }
    }

    @Test func aListOnATerminalIsATable() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run(
            "store", "k", "--label", "a label", "--expires", "2001-01-01T00:00:00Z", input: "x")
        let terminal = try PseudoTerminal(sandbox, ["list", "--key-file", "\(sandbox.home)/vault.key"])
        #expect(try terminal.end() == 0)
        let lines = terminal.shown.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("KEY  POLICY") ?? false)
        #expect(lines.last?.contains("expired  a label") ?? false)
    }
}
