import TestLanes
import Testing

/// `--revoke` and `device` on the command line.
@Suite(.tags(.programs), .from(.usual)) struct RevocationCommandTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox.withVault() }

    @Test func aSlotIsRevoked() throws {
        for key in ["a", "b"] { _ = try sandbox.run("store", key, input: "fake") }
        let second = "\(sandbox.home)/second"
        let third = "\(sandbox.home)/third"
        for path in [second, third] { #expect(try sandbox.run("slot", "add", "key-file", path).status == 0) }
        let recovery = try sandbox.file("recovery", try sandbox.run("slot", "add", "recovery").text)
        _ = try sandbox.shell("cp -p .local/share/tokenvault/default.vault old")

        let refused = try sandbox.run("slot", "remove", "2", "--revoke")
        expectOneLine(refused, status: 5)
        #expect(refused.error.contains("slot 3 (key-file), 4 (recovery) would be lost"))
        #expect(refused.error.contains("--drop-others"))
        expectOneLine(try sandbox.run("slot", "remove", "2", "--drop-others"), status: 64)
        expectOneLine(try sandbox.run("slot", "remove", "9", "--revoke", "--drop-others"), status: 3)
        let revoked = try sandbox.run(
            "slot", "remove", "2", "--revoke", "--keep-passphrase-file", recovery, "--drop-others")
        #expect(revoked.status == 0 && revoked.output.isEmpty)
        #expect(
            revoked.error
                == "vaultctl: note: slot 2 (key-file) is removed\nvaultctl: note: slot 3 (key-file) is removed\n"
        )
        for method in [["--key-file", second], ["--key-file", third]] {
            let arguments = (["list"] + method).map { Array($0.utf8) }
            expectOneLine(try Child.run(arguments, environment: sandbox.environment), status: 5)
        }
        #expect(try sandbox.run("retrieve", "a").text == "fake")
        #expect(try sandbox.run("retrieve", "b", "--passphrase-file", recovery).text == "fake")
        #expect(try sandbox.run("verify").status == 0)
        // The old copy still opens with the removed method. The command says so, and seals the items again
        // for that reason.
        _ = try sandbox.shell("mkdir -m 700 elsewhere")
        #expect(
            try sandbox.run(
                "slot", "list", "--vault", "\(sandbox.home)/old", "--state-dir", "\(sandbox.home)/elsewhere"
            ).text.split(separator: "\n").count == 4)
    }

    @Test func aPassphraseIsRevoked() throws {
        let old = try sandbox.file("old", "old fake words")
        let new = try sandbox.file("new", "new fake words")
        let key = "\(sandbox.home)/vault.key"
        _ = try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", old)
        _ = try sandbox.run("store", "k", input: "fake")
        let options = ["passphrase", "--passphrase-file", old, "--new-passphrase-file", new]
        let plain = (options + ["--keep-key-file", key]).map { Array($0.utf8) }
        expectOneLine(try Child.run(plain, environment: sandbox.environment), status: 64)
        let done = try Child.run(
            plain + [Array("--revoke".utf8)], environment: sandbox.environment)
        #expect(done.status == 0 && done.output.isEmpty && done.error.isEmpty, "\(done.error)")
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        #expect(try sandbox.run("retrieve", "k", "--passphrase-file", new).text == "fake")
        expectOneLine(try sandbox.run("retrieve", "k", "--passphrase-file", old), status: 5)
    }

    /// A person is asked for the recovery key: most vaults that people make have one.
    @Test func aPersonTypesTheRecoveryKey() throws {
        #expect(try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/second").status == 0)
        let key = try sandbox.run("slot", "add", "recovery").text.dropLast()
        let terminal = try PseudoTerminal(
            sandbox, ["slot", "remove", "2", "--revoke", "--key-file", "\(sandbox.home)/vault.key"])
        try terminal.expect("Recovery key")
        #expect(!terminal.echoes)
        try terminal.type((key.hasPrefix("7") ? "8" : "7") + key.dropFirst() + "\r")
        try terminal.expect("group 1 of the recovery key is mistyped")
        try terminal.expect("Recovery key")
        try terminal.type("something else\r")
        try terminal.expect("eight groups")
        // Text typed before the prompt is discarded when the echo is switched off.
        try terminal.expect("Recovery key")
        try terminal.type(key.lowercased() + "\r")
        #expect(try terminal.end() == 0)
        #expect(!terminal.shown.contains(key.dropFirst(6)))
        let file = try sandbox.file("recovery", String(key))
        #expect(try sandbox.run("list", "--passphrase-file", file).status == 0)
        #expect(try sandbox.run("slot", "list").text.split(separator: "\n").count == 2)
    }

    /// Without the recovery key its slot would go. Nothing else is asked for then.
    @Test func withoutTheRecoveryKeyNothingIsRevoked() throws {
        #expect(try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/second").status == 0)
        #expect(try sandbox.run("slot", "add", "recovery").status == 0)
        let before = try sandbox.run("slot", "list").text
        let terminal = try PseudoTerminal(
            sandbox, ["slot", "remove", "2", "--revoke", "--key-file", "\(sandbox.home)/vault.key"])
        try terminal.expect("Recovery key, to keep its slot:")
        try terminal.type("\r")
        try terminal.expect("the recovery key's slot would be lost")
        #expect(try terminal.end() == 5)
        #expect(try sandbox.run("slot", "list").text == before)
    }

    @Test func devicesComeAndGo() throws {
        _ = try sandbox.run("store", "here", input: "fake")
        _ = try sandbox.run("store", "anywhere", "--policy", "when-unlocked", input: "fake")
        let listed = try sandbox.run("device", "list").text
        #expect(listed.wholeMatch(of: #/[0-9a-f]{32}\t[^\t]+Z\tthis device\t1\n/#) != nil)
        let state = "\(sandbox.home)/elsewhere/deep"
        let missing = try sandbox.run("retrieve", "here", "--state-dir", state)
        expectOneLine(missing, status: 6)
        #expect(missing.error.contains("no device key at \(state)/"))
        let enrolled = try sandbox.run("device", "enrol", "--state-dir", state)
        let id = enrolled.text.dropLast()
        #expect(enrolled.status == 0 && id.wholeMatch(of: #/[0-9a-f]{32}/#) != nil, "\(enrolled.error)")
        expectOneLine(try sandbox.run("device", "enrol", "--state-dir", state), status: 9)
        #expect(try sandbox.run("store", "there", "--state-dir", state, input: "fake").status == 0)
        #expect(try sandbox.run("retrieve", "there", "--state-dir", state).text == "fake")
        expectOneLine(try sandbox.run("retrieve", "there"), status: 6)
        #expect(
            try sandbox.run("device", "list", "--json", without: "VAULTCTL_KEY_FILE").text
                .contains(#/{"id":"[0-9a-f]{32}","enrolled":"[^"]+","thisDevice":false}\]/#))
        expectOneLine(try sandbox.run("device", "remove", "no such device"), status: 3)
        expectOneLine(try sandbox.run("device", "remove", String(id)), status: 5)
        let removed = try sandbox.run("device", "remove", String(id), "--yes")
        #expect(removed.status == 0 && removed.error.hasPrefix("vaultctl: note: 1 item is removed with it\n"))
        expectOneLine(try sandbox.run("retrieve", "there"), status: 3)
        #expect(try sandbox.run("device", "list").text == listed)
        #expect(try sandbox.run("device").status == 64)
    }

    /// A state directory in memory beside a vault on a disk.
    @Test func aStateDirectoryThatDoesNotLastIsNotUsed() throws {
        let kinds = try sandbox.shell("stat -f -c %T . /dev/shm").text.split(separator: "\n")
        guard kinds.count == 2, kinds[0] != "tmpfs", kinds[0] != "overlayfs", kinds[1] == "tmpfs" else {
            return
        }
        let vault = "\(sandbox.home)/second.vault"
        let passing = "/dev/shm/vaultctl-test-\(sandbox.home.split(separator: "-").last ?? "")"
        defer { _ = try? sandbox.shell("rm -rf '\(passing)'") }
        let made = try sandbox.run("init", "--vault", vault, with: ["XDG_STATE_HOME": passing])
        #expect(made.status == 0 && made.error.contains("does not outlast a restart"))
        _ = try sandbox.run("store", "k", "--vault", vault, with: ["XDG_STATE_HOME": passing])
        #expect(try sandbox.run("info", "k", "--vault", vault, "--json").text.contains(#""when-unlocked""#))
        expectOneLine(
            try sandbox.run("device", "enrol", "--vault", vault, with: ["XDG_STATE_HOME": passing]), status: 8
        )
        // An explicit option uses the directory.
        let explicit = try sandbox.run(
            "init", "--vault", "\(sandbox.home)/third.vault", "--state-dir", passing)
        #expect(explicit.status == 0 && explicit.error.isEmpty)
        #expect(
            try sandbox.run("device", "list", "--vault", "\(sandbox.home)/third.vault").text.contains(
                "another"))
    }
}
