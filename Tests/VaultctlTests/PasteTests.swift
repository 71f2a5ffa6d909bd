import Glibc
import TestLanes
import Testing

/// Several lines at a prompt that takes one: the shell receives none of them.
@Suite(.tags(.programs), .from(.usual)) struct PasteTests {
    /// A secret with line ends, and commands that leave a trace if a shell runs them.
    private static func lines(_ sandbox: Sandbox, bytes: Int) -> String {
        let command = "touch \(sandbox.home)/spilled\r"
        return "fake-first\r" + String(repeating: command, count: bytes / command.utf8.count) + "\r"
    }

    private static func cut(_ text: String, _ size: Int) -> [String] {
        var rest = Substring(text)
        var pieces: [String] = []
        while !rest.isEmpty {
            pieces.append(String(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return pieces
    }

    /// A shell with job control, and `store` at its prompt.
    private static func storing(_ sandbox: Sandbox, type: String = "dumb") throws -> PseudoTerminal {
        sandbox.environment["PS1"] = "ready> "
        sandbox.environment["HISTFILE"] = "\(sandbox.home)/history"
        let shell = try PseudoTerminal(
            sandbox, program: "/bin/bash", ["--norc", "--noprofile", "--noediting", "-i"], type: type)
        try shell.expect("ready> ")
        try shell.type("\(Child.program) store k --key-file \(sandbox.home)/vault.key\r")
        try shell.expect("Secret: ")
        return shell
    }

    private static func expectNothingSpilled(_ shell: PseudoTerminal, _ sandbox: Sandbox) throws {
        try shell.expect("vaultctl: several lines were pasted at the prompt: ")
        try shell.expect("pipe it in")
        let before = try shell.expect("ready> ")
        #expect(!before.contains("touch"), "\(before)")
        #expect(shell.echoes)
        try shell.type("exit\r")
        _ = try shell.end()
        #expect(!shell.shown.contains("touch") && !shell.shown.contains("fake-first"), "\(shell.shown)")
        #expect(access("\(sandbox.home)/spilled", F_OK) != 0)
        #expect(try !sandbox.shell("cat history").text.contains("touch"))
        #expect(try sandbox.run("retrieve", "k").status == 3)
    }

    /// 667 bytes every 10 ms, and 4 KiB at once.
    @Test(arguments: [(667, 10), (4_096, 0)])
    func severalLinesStoreNothing(_ size: Int, _ milliseconds: Int32) throws {
        let sandbox = try Sandbox.withVault()
        let shell = try Self.storing(sandbox)
        try shell.paste(Self.cut(Self.lines(sandbox, bytes: 4_000), size), every: milliseconds)
        try Self.expectNothingSpilled(shell, sandbox)
    }

    @Test func linesThatComeLaterAreDiscardedToo() throws {
        let sandbox = try Sandbox.withVault()
        let shell = try Self.storing(sandbox)
        try shell.paste(["fake-first\r", "touch \(sandbox.home)/spilled\r"], every: 30)
        try Self.expectNothingSpilled(shell, sandbox)
    }

    @Test func aMarkedPasteOfSeveralLinesStoresNothing() throws {
        let sandbox = try Sandbox.withVault()
        let shell = try Self.storing(sandbox, type: "xterm")
        let lines = Self.lines(sandbox, bytes: 3_000)
        try shell.paste(Self.cut("\u{1b}[200~\(lines)\u{1b}[201~", 667), every: 10)
        // The terminal's paste mode ends with the prompt.
        try shell.expect("\u{1b}[?2004l")
        try Self.expectNothingSpilled(shell, sandbox)
    }

    @Test func aMarkedPasteOfOneLineIsTheSecret() throws {
        let sandbox = try Sandbox.withVault()
        let key = "\(sandbox.home)/vault.key"
        // The line ends inside the paste or behind it.
        for end in ["\r\u{1b}[201~", "\u{1b}[201~\r"] {
            let terminal = try PseudoTerminal(sandbox, ["store", "k", "--key-file", key], type: "xterm")
            #expect(try terminal.expect("Secret: ").hasSuffix("\u{1b}[?2004h"))
            try terminal.type("\u{1b}[200~fake-secret\(end)")
            try terminal.expect("\u{1b}[?2004l")
            #expect(try terminal.end() == 0)
            #expect(try sandbox.run("retrieve", "k").text == "fake-secret")
        }
    }

    @Test(arguments: [SIGTERM, SIGTSTP])
    func aSignalEndsTheMarkingOfPastes(_ signal: Int32) throws {
        let sandbox = try Sandbox.withVault()
        let key = "\(sandbox.home)/vault.key"
        let terminal = try PseudoTerminal(sandbox, ["store", "k", "--key-file", key], type: "xterm")
        try terminal.expect("\u{1b}[?2004hSecret: ")
        terminal.send(signal)
        try terminal.expect("\u{1b}[?2004l")
        if signal == SIGTSTP {
            // The leader of a session is not stopped, so the prompt comes again.
            try terminal.expect("\u{1b}[?2004hSecret: ")
            try terminal.type("\u{4}")
            try terminal.expect("\u{1b}[?2004l")
        }
        #expect(try terminal.end() == (signal == SIGTERM ? 128 + signal : 1))
    }

    @Test func aPassphrasePromptDiscardsAPasteToo() throws {
        let terminal = try PseudoTerminal(try Sandbox(), ["init"])
        try terminal.expect("New passphrase: ")
        try terminal.paste(["fake-first\rfake-second\r", "fake-third\r"], every: 30)
        #expect(try terminal.end() == 1)
        #expect(terminal.shown.contains("several lines were pasted"))
        #expect(!terminal.shown.contains("fake-"))
    }
}
