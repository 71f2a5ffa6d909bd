import Glibc
import ProgramSupport
import TestLanes
import Testing
import TokenVault

@testable import vaultctl

/// Error lines say what is at fault and what to do about it here.
@Suite(.tags(.programs), .from(.usual)) struct AdviceTests {
    @Test func anExportToNowhereSpeaksOfStandardOutput() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("words", "fake words\n")
        for output in [Child.Output.closed, .path("/dev/full")] {
            let refused = try sandbox.run("export", "-", "--export-passphrase-file", words, output: output)
            expectOneLine(refused, status: 1)
            #expect(refused.error.contains("standard output: "), "\(refused.error)")
            #expect(!refused.error.contains("disk") && !refused.error.contains("free some"))
        }
        let unread = try sandbox.run("import", "-", "--export-passphrase-file", words, stdin: .closed)
        expectOneLine(unread, status: 1)
        #expect(unread.error.contains("check the source of the input"), "\(unread.error)")
    }

    @Test(arguments: [["unlock"], ["retrieve", "k"], ["token", "work"], ["login", "work"], ["profiles"]])
    func whatHasNoVaultNamesTheCommandThatMakesOne(_ command: [String]) throws {
        let sandbox = try Sandbox()
        let refused = try sandbox.run(arguments: command)
        expectOneLine(refused, status: 8)
        #expect(refused.error.contains("\"vaultctl init\""), "\(refused.error)")
    }

    /// There is a file, and `init` would not help.
    @Test func aPathThroughAFileIsChecked() throws {
        let sandbox = try Sandbox.withVault()
        let refused = try sandbox.run("retrieve", "k", "--vault", "\(sandbox.vault)/default.vault")
        expectOneLine(refused, status: 8)
        #expect(
            refused.error.contains("check --vault") && !refused.error.contains("init"), "\(refused.error)")
    }

    /// What an unlock here would show comes before what only another device reads.
    @Test func lockedItemsDecideTheStatusOfAListing() {
        let listing = TokenListing(items: [], hidden: 3, hiddenReasons: [.locked: 1, .wrongDevice: 2])
        let failure = List.failure(hiding: listing, .locked)
        #expect(failure.status == .locked && failure.happened.contains("2 items are not shown"))
    }

    /// Whatever file is refused, the line names the command that settles it.
    @Test func everyRefusalOfAFileNamesACommand() {
        let codes: [TokenStorageError.Code] = [.rolledBack, .forked, .unexpectedVault, .duplicateVault]
        let reasons =
            TokenStorageError.Reason.Ancestry.allCases.map { TokenStorageError.Reason.ancestry($0) } + [
                .forkedBeyondMemory(commits: 8_192), .replacedVault(path: "/p"),
                .vaultIsElsewhere(path: "/p"),
                .otherVaultExpected(path: "/p"), .copyOfAnotherVault(path: "/p"),
            ]
        for code in codes {
            for reason in [nil] + reasons.map(Optional.init) {
                let failure = CommandFailure(
                    TokenStorageError(code, operation: "open", backend: "file", reason: reason))
                #expect(failure.advice.contains("\"vaultctl "), "\(failure.line)")
            }
        }
    }

    @Test func damagedValuesAreSaidToBeDamaged() {
        let listing = TokenListing(items: [], hidden: 1, hiddenReasons: [.corrupt: 1])
        let failure = List.failure(hiding: listing, .unlocked) { $0 == 1 ? "1 value is" : "\($0) values are" }
        #expect(failure.status == .damaged && failure.happened.contains("1 value is damaged"))
        #expect(failure.advice.contains("vaultctl verify"))
    }

    /// Whatever the reason is, the number is right.
    @Test func aReasonWithoutWordsIsCounted() {
        let listing = TokenListing(items: [], hidden: 2, hiddenReasons: [.internalError: 2])
        #expect(List.failure(hiding: listing, .unlocked).happened.contains("2 items are not shown"))
    }

    @Test func whatIsNotFoundMayBeInAnotherService() throws {
        let sandbox = try Sandbox.withVault()
        for command in [["retrieve", "k"], ["delete", "k"], ["info", "k"]] {
            let refused = try sandbox.run(arguments: command)
            expectOneLine(refused, status: 3)
            #expect(
                refused.error.contains("--service, else VAULTCTL_SERVICE, else \"default\""),
                "\(refused.error)")
        }
    }

    /// The command that is named can be typed as it is.
    @Test func whatIsInTheVaultsPlaceIsMovedAsTold() throws {
        let sandbox = try Sandbox.withVault()
        let place = "\(sandbox.home)/a person's vault"
        _ = try sandbox.shell(
            "cp -p '\(sandbox.vault)' backup; mv '\(sandbox.vault)' away; echo fake >\"\(place)\"")
        let refused = try sandbox.run("restore", "\(sandbox.home)/backup", "--yes", "--vault", place)
        expectOneLine(refused, status: 8)
        let command = try #require(refused.error.firstMatch(of: /try again: (mv .*)\n/)?.1)
        #expect(try sandbox.shell(String(command)).status == 0)
        #expect(try sandbox.shell("cat \"\(place).aside\"").text == "fake\n")
        #expect(
            try sandbox.run("restore", "\(sandbox.home)/backup", "--yes", "--vault", place).status == 0)
    }

    @Test func anotherStateDirectoryIsSuspectedBeforeAnotherDevice() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        let elsewhere = "\(sandbox.home)/elsewhere"
        let refused = try sandbox.run("retrieve", "k", "--state-dir", elsewhere)
        expectOneLine(refused, status: 6)
        let state = try #require(
            refused.error.firstRange(of: "check HOME, XDG_STATE_HOME and --state-dir"), "\(refused.error)")
        let remove = try #require(refused.error.firstRange(of: "vaultctl device remove"), "\(refused.error)")
        #expect(state.upperBound < remove.lowerBound)
        // A restore notes the items of the other device, before the user discards that device.
        let backup = "\(sandbox.home)/backup"
        _ = try sandbox.shell("cp -p '\(sandbox.vault)' backup")
        let fresh = "\(sandbox.home)/fresh"
        for (directory, isTold) in [(fresh, true), ("\(sandbox.home)/.local/state/tokenvault", false)] {
            let restored = try sandbox.run(
                "restore", backup, "--yes", "--vault", isTold ? "\(sandbox.home)/other.vault" : sandbox.vault,
                "--state-dir", directory)
            #expect(restored.status == 0, "\(restored.error)")
            #expect(
                restored.error.contains("note: 1 item cannot be read on this device") == isTold,
                "\(restored.error)")
        }
    }

    @Test func aPassphraseThatNobodyTypesIsAskedOfNobody() throws {
        let sandbox = try Sandbox()
        let words = try sandbox.file("words", "fake words\n")
        try #require(try sandbox.run("init", "--passphrase-file", words).status == 0)
        let refused = try sandbox.run("passphrase", without: "VAULTCTL_KEY_FILE")
        expectOneLine(refused, status: 4)
        #expect(
            refused.error.hasSuffix(": give --passphrase-file or --passphrase-fd 0\n"), "\(refused.error)")
        let unlock = try sandbox.run(
            "unlock", input: "x", without: "VAULTCTL_KEY_FILE",
            with: [
                "XDG_RUNTIME_DIR": sandbox.home, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/no/bus",
            ])
        expectOneLine(unlock, status: 4)
        #expect(
            unlock.error.contains("no terminal to prompt on: give --passphrase-file, --passphrase-fd 0 or"))
        #expect(access("\(sandbox.home)/tokenvault", F_OK) != 0)
    }

    @Test func aConflictNamesTheOptionThatSettlesIt() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("words", "fake words\n")
        _ = try sandbox.run("store", "k", "--policy", "when-unlocked", input: "fake-1")
        _ = try sandbox.run("export", "\(sandbox.home)/out", "--export-passphrase-file", words)
        _ = try sandbox.run("store", "k", input: "fake-2")
        let line = #"{"key":"k","value":"fake-3"}"#
        for refused in [
            try sandbox.run("import", "\(sandbox.home)/out", "--export-passphrase-file", words),
            try sandbox.run("import", "-", "--format", "ndjson", input: line),
        ] {
            expectOneLine(refused, status: 9)
            #expect(refused.error.contains("nothing was imported;"), "\(refused.error)")
            #expect(refused.error.contains("--on-conflict skip or --on-conflict replace"), "\(refused.error)")
        }
    }

    @Test func aLineThatCannotBeStoredIsNamed() throws {
        let sandbox = try Sandbox.withVault()
        let long = String(repeating: "k", count: 1_025)
        let attributes = (1...65).map { "\"a\($0)\":\"\"" }.joined(separator: ",")
        let mistakes: [(String, Int32, String)] = [
            (#"{"key":"good","value":"fake-other"}"#, 64, "line 3 has the key of line 1, and"),
            ("{\"key\":\"\(long)\",\"value\":\"fake-other\"}", 64, "line 3: "),
            ("{\"key\":\"k\",\"service\":\"\(long)\",\"value\":\"fake-other\"}", 64, "line 3: "),
            ("{\"key\":\"k\",\"value\":\"fake-other\",\"attributes\":{\(attributes)}}", 64, "line 3: "),
            (
                "{\"key\":\"k\",\"value\":\"\(String(repeating: "f", count: (1 << 20) + 1))\"}", 1, "line 3: "
            ),
        ]
        for (line, status, told) in mistakes {
            let refused = try sandbox.run(
                "import", "-", "--format", "ndjson",
                input: #"{"key":"good","value":"fake-good"}"# + "\n\n" + line + "\n")
            expectOneLine(refused, status: status, hiding: ["fake-other"])
            #expect(refused.error.contains("vaultctl: \(told)"), "\(refused.error)")
            #expect(refused.error.contains(": nothing was imported;"), "\(refused.error)")
        }
        // The same key in another service is another item, and so are other bytes of the same characters.
        let apart = [
            #"{"key":"é","value":"1"}"#, #"{"key":"e\u0301","value":"2"}"#,
            #"{"key":"é","service":"b","value":"3"}"#,
        ]
        let stored = try sandbox.run(
            "import", "-", "--format", "ndjson", "--json", input: apart.joined(separator: "\n"))
        #expect(stored.text.contains(#""added":3"#), "\(stored.error)")
        #expect(try sandbox.run("retrieve", "good").status == 3)
    }

    @Test func whatRefusesToWriteSaysWhatToLeaveOut() throws {
        let sandbox = try Sandbox.withVault()
        let asked = try sandbox.run("store", "k", "--read-only", input: "fake")
        expectOneLine(asked, status: 1)
        #expect(asked.error.hasSuffix(": leave --read-only out\n"), "\(asked.error)")
        let elsewhere = try sandbox.run(
            "store", "k", "--policy", "when-unlocked-this-device-only", "--state-dir",
            "\(sandbox.home)/elsewhere", input: "fake")
        expectOneLine(elsewhere, status: 1)
        #expect(elsewhere.error.contains("\"vaultctl device enrol\""), "\(elsewhere.error)")
    }

    @Test func linesOfJSONAreKnownForSuch() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("words", "fake words\n")
        let path = try sandbox.file("x.ndjson", "\n {\"key\":\"k\",\"value\":\"fake\"}\n")
        let plain = try sandbox.run("import", path)
        expectOneLine(plain, status: 64)
        let given = try sandbox.run("import", "-", "--export-passphrase-file", words, stdin: .path(path))
        expectOneLine(given, status: 64)
        let piped = try sandbox.shell(
            "tail -c +3 x.ndjson | \"$V\" import - --export-passphrase-file words")
        expectOneLine(piped, status: 7)
        for refused in [plain, given, piped] {
            #expect(refused.error.contains("--format ndjson"), "\(refused.error)")
        }
        #expect(try sandbox.run("import", path, "--format", "ndjson").status == 0)
    }

    /// The command that is named can be typed as it is.
    @Test func whatIsOpenToOthersIsClosedAsTold() throws {
        let sandbox = try Sandbox.withVault()
        let place = "\(sandbox.home)/a person's vault"
        _ = try sandbox.shell("mv '\(sandbox.vault)' \"\(place)\"; chmod 644 \"\(place)\"")
        let refused = try sandbox.run("list", "--vault", place)
        expectOneLine(refused, status: 8)
        let command = try #require(refused.error.firstMatch(of: /run (chmod .*)\n/)?.1, "\(refused.error)")
        #expect(try sandbox.shell(String(command)).status == 0)
        #expect(try sandbox.run("list", "--vault", place).status == 0)
    }

    @Test func whatIsMissingIsNamed() throws {
        let sandbox = try Sandbox.withVault()
        let file = try sandbox.file("file", "")
        _ = try sandbox.shell("mv '\(sandbox.vault)' away")
        for command in ["status", "list", "init"] {
            let gone = try sandbox.run(arguments: [command])
            expectOneLine(gone, status: 8)
            #expect(gone.error.contains("the vault file is gone: \(sandbox.vault)"), "\(gone.error)")
        }
        _ = try sandbox.shell("mv away '\(sandbox.vault)'; \"$V\" destroy --yes")
        let destroyed = try sandbox.run("list")
        expectOneLine(destroyed, status: 8)
        #expect(destroyed.error.contains("no such file: \(sandbox.vault)"), "\(destroyed.error)")
        #expect(destroyed.error.contains("create the vault with \"vaultctl init\""), "\(destroyed.error)")
        for command in ["status", "init"] {
            let nowhere = try sandbox.run(command, "--vault", "\(file)/vault")
            expectOneLine(nowhere, status: 1)
            #expect(nowhere.error.contains("the vault's directory \(file): "), "\(nowhere.error)")
        }
    }

    /// The message shows an absolute path whose first directory exists. Any other word may be a passphrase
    /// that was typed in the wrong place.
    @Test func aMissingKeyOrPassphraseFileIsNamed() throws {
        let sandbox = try Sandbox.withVault()
        let missing = "\(sandbox.home)/missing"
        for (option, what) in [("--key-file", "key"), ("--passphrase-file", "passphrase")] {
            let named = try sandbox.run("list", option, missing)
            expectOneLine(named, status: 1)
            #expect(named.error.contains("the \(what) file \(missing): "), "\(named.error)")
            let word = try sandbox.shell("\"$V\" list \(option) fake-words")
            expectOneLine(word, status: 1, hiding: ["fake-words"])
            #expect(word.error.contains("the \(what) file, looked for in \(sandbox.home): "), "\(word.error)")
            for typed in ["/fake-words", "/fake/words"] {
                expectOneLine(try sandbox.run("list", option, typed), status: 1, hiding: [typed])
            }
        }
    }

    @Test func theAgentsDirectoryIsNamed() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.shell("mkdir -m 700 run; ln -s /tmp run/tokenvault")
        let refused = try sandbox.run("list", with: ["XDG_RUNTIME_DIR": "\(sandbox.home)/run"])
        expectOneLine(refused, status: 8)
        #expect(
            refused.error.hasPrefix(
                "vaultctl: the agent's directory \(sandbox.home)/run/tokenvault is a link or not a directory: "
            ),
            "\(refused.error)")
    }

    /// `vaultctl init` does not advise the user to create a vault.
    @Test func aVaultThatCannotBeCreatedSaysWhere() throws {
        let sandbox = try Sandbox()
        let file = try sandbox.file("file", "")
        for (environment, status, place, variable) in [
            (["HOME": "/proc"], 8, "/proc/.local/share/tokenvault", "XDG_DATA_HOME"),
            (["XDG_DATA_HOME": file], 1, "\(file)/tokenvault", "XDG_DATA_HOME"),
            (["XDG_DATA_HOME": "/proc/self"], 8, "/proc/self/tokenvault", "XDG_DATA_HOME"),
            (["XDG_STATE_HOME": file], 8, "\(file)/tokenvault", "XDG_STATE_HOME"),
        ] as [([String: String], Int32, String, String)] {
            let refused = try sandbox.run("init", with: environment)
            expectOneLine(refused, status: status)
            #expect(!refused.error.contains("vaultctl init"), "\(refused.error)")
            #expect(refused.error.contains(" \(place)"), "\(refused.error)")
            #expect(refused.error.contains(variable) && refused.error.contains("HOME\n"), "\(refused.error)")
            #expect(access("\(sandbox.home)/vault.key", F_OK) != 0)
        }
    }

    /// What opens the file itself is not helped by the agent, and neither it nor its help says so.
    @Test(arguments: [
        ["verify"], ["export", "out"], ["compact"], ["slot", "add", "recovery"], ["slot", "remove", "1"],
        ["device", "enrol"], ["device", "remove", "0"], ["restore", "copy"], ["adopt"], ["salvage", "out"],
        ["import", "out"], ["migrate", "--from", "file", "--to", "memory"], ["passphrase"],
    ])
    func whatOpensTheFileItselfSaysWhatOpensIt(_ command: [String]) throws {
        let sandbox = try Sandbox()
        let words = try sandbox.file("words", "fake words\n")
        try #require(try sandbox.run("init", "--passphrase-file", words).status == 0)
        _ = try sandbox.shell("cp -p '\(sandbox.vault)' copy")
        sandbox.environment["VAULTCTL_KEY_FILE"] = nil
        let refused = try sandbox.shell("\"$V\" \(command.joined(separator: " ")) </dev/null")
        expectOneLine(refused, status: 4)
        #expect(refused.error.contains("--passphrase-file"), "\(refused.error)")
        #expect(!refused.error.contains("vaultctl unlock"), "\(refused.error)")
        let topic = command.prefix {
            !$0.hasPrefix("-") && !["out", "copy", "0", "1", "recovery"].contains($0)
        }
        let help = try sandbox.run(arguments: ["help"] + topic).text
        #expect(
            help.split { $0.isWhitespace }.joined(separator: " ").contains("opens the file itself"), "\(help)"
        )
        let unlock = try sandbox.run("help", "unlock").text
        #expect(unlock.split { " ,.\n".contains($0) }.contains { $0 == topic[0] }, "\(unlock)")
    }

    @Test func whatAsksTheAgentSaysThatItCanUnlock() throws {
        let sandbox = try Sandbox()
        let words = try sandbox.file("words", "fake words\n")
        try #require(try sandbox.run("init", "--passphrase-file", words).status == 0)
        let refused = try sandbox.run("retrieve", "k", without: "VAULTCTL_KEY_FILE")
        expectOneLine(refused, status: 4)
        #expect(refused.error.contains("run \"vaultctl unlock\""), "\(refused.error)")
    }

    /// The program can tell what opens a vault without opening it. It does not ask for a passphrase that does
    /// not exist.
    @Test func noPassphraseIsAskedForWhereNoneOpensTheVault() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("words", "fake words\n")
        for command in ["list", "unlock", "verify", "compact"] {
            let terminal = try PseudoTerminal(sandbox, [command])
            #expect(try terminal.end() == 4)
            #expect(!terminal.shown.contains("Passphrase:"), "\(terminal.shown)")
            let alone = try sandbox.run(command, without: "VAULTCTL_KEY_FILE")
            expectOneLine(alone, status: 4)
            // With a passphrase, unlock would start an agent.
            if command == "unlock" { continue }
            let wrong = try sandbox.run(command, "--passphrase-file", words)
            expectOneLine(wrong, status: 5)
            #expect(wrong.error.hasPrefix("vaultctl: wrong passphrase or key ("), "\(wrong.error)")
            for line in [terminal.shown, alone.error, wrong.error] {
                #expect(line.contains("opens with a key file, not with a passphrase"), "\(line)")
                #expect(line.hasSuffix(": give --key-file FILE\n"), "\(line)")
            }
        }
        expectOneLine(try sandbox.run("status", "--passphrase-file", words), status: 5)
        let passphrase = try sandbox.run("passphrase", without: "VAULTCTL_KEY_FILE")
        expectOneLine(passphrase, status: 4)
        #expect(passphrase.error.contains("\"vaultctl slot add passphrase\""), "\(passphrase.error)")
        // With a passphrase slot, there is a prompt, so the key file is not mentioned.
        _ = try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", words)
        let asking = try PseudoTerminal(sandbox, ["list"])
        try asking.expect("Passphrase: ")
        try asking.type("fake words\r")
        #expect(try asking.end() == 0)
    }
}
