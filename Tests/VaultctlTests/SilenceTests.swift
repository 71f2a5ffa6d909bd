import Glibc
import TestLanes
import Testing

/// What is typed at a terminal while the key of a passphrase is derived, and passphrases that are mistyped.
@Suite(.tags(.programs), .from(.usual)) struct SilenceTests {
    private static let passphrase = "fake correct horse"
    let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        let words = try sandbox.file("words", "\(Self.passphrase)\n")
        let made = try sandbox.run("init", "--passphrase-file", words)
        try #require(made.status == 0, "\(made.error)")
    }

    /// A terminal at which a wrong passphrase was entered, and its key is being derived or the next one asked for.
    private func deriving() throws -> PseudoTerminal {
        let terminal = try PseudoTerminal(sandbox, ["list"])
        try terminal.expect("Passphrase: ")
        try terminal.type("fake guess\r")
        try terminal.expect("\n")
        return terminal
    }

    @Test func whatIsTypedMeanwhileIsNotShown() throws {
        let terminal = try deriving()
        #expect(!terminal.echoes)
        try terminal.type("typed ahead")
        let before = try terminal.expect("Passphrase: ")
        try terminal.type("\u{15}\(Self.passphrase)\r")
        #expect(try terminal.end() == 0)
        #expect(terminal.echoes)
        #expect(!before.contains("ahead") && !terminal.shown.contains("ahead"), "\(before)\(terminal.shown)")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    func aSignalMeanwhileGivesTheEchoBack(_ signal: Int32) throws {
        let terminal = try deriving()
        terminal.send(signal)
        #expect(try terminal.end() == 128 + signal)
        #expect(terminal.echoes)
    }

    @Test func aProgramThatIsStoppedMeanwhileGivesTheEchoBack() throws {
        sandbox.environment["PS1"] = "ready> "
        let shell = try PseudoTerminal(
            sandbox, program: "/bin/bash", ["--norc", "--noprofile", "--noediting", "-i"])
        try shell.expect("ready> ")
        try shell.type("\(Child.program) list\r")
        try shell.expect("Passphrase: ")
        try shell.type("fake guess\r")
        try shell.expect("\n")
        try shell.type("\u{1a}")
        try shell.expect("Stopped")
        try shell.expect("ready> ")
        #expect(shell.echoes)
        try shell.type("fg\r")
        try shell.expect("Passphrase: ")
        #expect(!shell.echoes)
        try shell.type("\(Self.passphrase)\r")
        try shell.expect("ready> ")
        #expect(shell.echoes)
        try shell.type("exit\r")
        _ = try shell.end()
    }

    @Test(arguments: [
        ["verify"], ["passphrase"], ["device", "remove", "none"], ["slot", "add", "recovery"],
        ["slot", "remove", "9"],
    ])
    func aMistypedPassphraseIsAskedForAgain(_ words: [String]) throws {
        let terminal = try PseudoTerminal(sandbox, words)
        try terminal.expect("Passphrase: ")
        try terminal.type("fake guess\r")
        try terminal.expect("Try again.")
        try terminal.expect("Passphrase: ")
        try terminal.type("\(Self.passphrase)\r")
        if words == ["passphrase"] {
            try terminal.expect("New passphrase: ")
            #expect(!terminal.echoes)
            try terminal.type("\u{3}")
        }
        let expected: [String: Int32] = ["verify": 0, "passphrase": 128 + SIGINT, "device": 3]
        #expect(try terminal.end() == expected[words[0], default: words[1] == "add" ? 0 : 3])
        #expect(terminal.echoes)
    }
}
