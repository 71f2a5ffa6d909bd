import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

@testable import vaultctl

/// Recovery keys and scopes on the command line.
@Suite(.tags(.programs), .from(.usual)) struct SlotCommandTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox.withVault() }

    /// What a passphrase costs to try is shown; a key file costs nothing.
    @Test func theListShowsCosts() throws {
        let words = try sandbox.file("words", "fake words\n")
        #expect(try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", words).status == 0)
        let lines = try sandbox.run("slot", "list").text.split(separator: "\n")
        #expect(lines.count == 2 && !lines[0].contains("MiB"), "\(lines)")
        let cost = try #require(
            lines[1].firstMatch(of: #/\t([0-9]+) x ([0-9]+)(?:\.[0-9])? MiB$/#), "\(lines)")
        let json = try sandbox.run("slot", "list", "--json").text
        let costs = json.matches(of: #/"cost":{"passes":([0-9]+),"memory":([0-9]+)}/#)
        #expect(costs.count == 1 && costs[0].output.1 == cost.output.1, "\(json)")
        #expect(costs.first.flatMap { Int($0.output.2) }.map { $0 >> 20 } == Int(cost.output.2), "\(json)")
    }

    @Test func aSecondSlotOfAKeyIsRefused() throws {
        let again = try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/vault.key")
        expectOneLine(again, status: 9)
        #expect(again.error.contains("slot 1 (key-file) already has this unlock method"), "\(again.error)")
        let words = try sandbox.file("words", "fake words\n")
        #expect(try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", words).status == 0)
        let twice = try sandbox.run(
            "slot", "add", "passphrase", "--new-passphrase-file", words, "--passphrase-file", words)
        expectOneLine(twice, status: 9)
        #expect(try sandbox.run("slot", "list").text.split(separator: "\n").count == 2)
        // The existing key file stays.
        #expect(try sandbox.run("list").status == 0)
    }

    @Test func aRecoveryKeyIsPrintedOnceAndOpensTheVault() throws {
        _ = try sandbox.run("store", "k", input: "fake")
        let added = try sandbox.run("slot", "add", "recovery")
        #expect(added.status == 0 && added.text.wholeMatch(of: #/[0-9A-Z-]{47}\n/#) != nil)
        #expect(
            added.error
                == "vaultctl: note: slot 1 (key-file) still opens everything by itself; to narrow it, remove it and add it again\n"
        )
        let file = try sandbox.file("written down", added.text.lowercased() + "a note\n")
        #expect(try sandbox.run("retrieve", "k", "--passphrase-file", file).text == "fake")
        #expect(try sandbox.run("slot", "list").text.contains("\n2\trecovery\t"))
        #expect(try !sandbox.run("slot", "list", "--json").text.contains("recoveryKey"))
        let json = try sandbox.run("slot", "add", "recovery", "--json").text
        #expect(
            json.wholeMatch(
                of:
                    #/{"id":3,"kind":"recovery","created":"[^"]+","scope":"all","recoveryKey":"[0-9A-Z-]{47}"}\n/#
            ) != nil)

        var wrong = Array(added.text)
        wrong[18] = wrong[18] == "7" ? "8" : "7"
        let mistyped = try sandbox.file("mistyped", String(wrong))
        let refused = try sandbox.run("retrieve", "k", "--passphrase-file", mistyped)
        expectOneLine(refused, status: 5, hiding: [String(wrong.dropLast())])
        #expect(refused.error.contains("group 4 of the recovery key"))
        let new = try sandbox.file("new", "fake words")
        expectOneLine(
            try sandbox.run("passphrase", "--passphrase-file", file, "--new-passphrase-file", new), status: 5)
        for words in [["recovery", "path"], ["recovery", "--new-passphrase-file", new]] {
            let arguments = (["slot", "add"] + words).map { Array($0.utf8) }
            expectOneLine(try Child.run(arguments, environment: sandbox.environment), status: 64)
        }
    }

    @Test func initPrintsARecoveryKeyWhenAskedTo() throws {
        let other = "\(sandbox.home)/other.vault"
        let made = try sandbox.run("init", "--vault", other, "--recovery")
        #expect(made.status == 0 && made.text.wholeMatch(of: #/[0-9A-Z-]{47}\n/#) != nil)
        let file = try sandbox.file("written down", made.text)
        #expect(try sandbox.run("list", "--vault", other, "--passphrase-file", file).status == 0)
        let json = try sandbox.run("init", "--vault", "\(sandbox.home)/third.vault", "--recovery", "--json")
            .text
        #expect(json.contains(#""kind":"recovery""#) && json.contains(#"],"recoveryKey":""#))
        // A vault that only a keyring opens needs a keyring. Here there is neither a keyring nor a user to
        // ask.
        let alone = try sandbox.run(
            "init", "--vault", "\(sandbox.home)/fourth.vault", "--secret-service", "--no-input",
            without: "VAULTCTL_KEY_FILE")
        expectOneLine(alone, status: 5)
        #expect(alone.error.contains("--recovery"))
        expectOneLine(
            try sandbox.run(
                "init", "--vault", "\(sandbox.home)/fourth.vault", "--secret-service", "--recovery",
                without: "VAULTCTL_KEY_FILE"), status: 8)
        expectOneLine(
            try sandbox.run("init", "--vault", "\(sandbox.home)/fourth.vault", "--secret-service"), status: 64
        )
    }

    @Test func whatOpensByItselfIsToldTheTruth() throws {
        let recovery = try sandbox.file("recovery", try sandbox.run("slot", "add", "recovery").text)
        let narrow = "\(sandbox.home)/narrow"
        let added = try sandbox.run("slot", "add", "key-file", narrow)
        #expect(added.text == "3\n" && added.error.contains("with --scope all it opens everything"))
        #expect(try sandbox.run("slot", "list").text.hasSuffix("\tafter-first-unlock\n"))
        _ = try sandbox.run("store", "shut", input: "fake")
        _ = try sandbox.run("store", "open", "--policy", "after-first-unlock", input: "fake")

        let listed = try sandbox.run("list", "--key-file", narrow)
        #expect(listed.status == 5 && listed.text == "open\n")
        #expect(
            listed.error
                == "vaultctl: 1 item is not shown with this unlock method: unlock with the passphrase\n"
        )
        expectOneLine(try sandbox.run("retrieve", "shut", "--key-file", narrow), status: 5)
        #expect(try sandbox.run("retrieve", "open", "--key-file", narrow).text == "fake")
        expectOneLine(try sandbox.run("store", "new", "--key-file", narrow, input: "fake"), status: 5)
        let status = try sandbox.run("status", "--key-file", narrow)
        #expect(
            status.text.contains("state:       locked, except for after-first-unlock items\n"))
        #expect(
            try sandbox.run("status", "--json", "--key-file", narrow).text
                .contains(#""scope":"after-first-unlock""#))
        #expect(try sandbox.run("init", "--vault", "\(sandbox.home)/other.vault").status == 0)
        let stayed = try sandbox.run(
            "migrate", "--from", "file", "--to", "file", "--to-vault", "\(sandbox.home)/other.vault",
            "--key-file", narrow,
            "--to-key-file", "\(sandbox.home)/vault.key")
        #expect(stayed.status == 5, "\(stayed.error)")
        // On another device both reasons apply, and the greater exit status counts.
        let elsewhere = try sandbox.run(
            "list", "--key-file", narrow, "--state-dir", "\(sandbox.home)/elsewhere")
        #expect(elsewhere.status == 6 && elsewhere.text == "open\n")

        let all = try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/all", "--scope", "all")
        #expect(all.status == 0 && all.error.contains("open everything without the user"))
        #expect(try sandbox.run("retrieve", "shut", "--key-file", "\(sandbox.home)/all").text == "fake")
        expectOneLine(try sandbox.run("slot", "add", "recovery", "--scope", "after-first-unlock"), status: 64)
        expectOneLine(try sandbox.run("slot", "add", "key-file", "p", "--scope", "some"), status: 64)
        for id in ["1", "4"] {
            #expect(try sandbox.run("slot", "remove", id, "--passphrase-file", recovery).status == 0)
        }
        expectOneLine(try sandbox.run("slot", "remove", "2", "--passphrase-file", recovery), status: 1)
    }

    /// A key that the user has not seen opens nothing.
    @Test func aRecoveryKeyThatCannotBePrintedIsNotAdded() throws {
        for words in ["slot add recovery", "slot add recovery --json", "init --vault other.vault --recovery"]
        {
            expectOneLine(try sandbox.shell("\"$V\" \(words) >/dev/full"), status: 1)
        }
        // The reader closes the pipe before anything is written, which ends the program silently.
        let unread = try sandbox.shell(
            "mkfifo pipe; exec 3<>pipe 4>pipe 3<&-; \"$V\" slot add recovery >&4; echo $?")
        #expect(unread.text == "141\n" && !unread.error.contains("vaultctl: "))
        #expect(try sandbox.run("slot", "list").text.split(separator: "\n").count == 1)
        #expect(
            try sandbox.run("slot", "list", "--vault", "\(sandbox.home)/other.vault").text
                .split(separator: "\n").count == 1)
    }

    /// In a vault with a recovery key it would open nothing.
    @Test func aPassphraseThatReadsLikeAMistypedRecoveryKeyIsRefused() throws {
        var typed = Array(try sandbox.run("slot", "add", "recovery").text)
        typed[18] = typed[18] == "7" ? "8" : "7"
        let file = try sandbox.file("passphrase", String(typed))
        let hidden = [String(typed.dropLast())]
        expectOneLine(
            try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", file), status: 64,
            hiding: hidden)
        expectOneLine(
            try sandbox.run("init", "--vault", "\(sandbox.home)/other.vault", "--passphrase-file", file),
            status: 64, hiding: hidden)
    }

    @Test func aKeyFileThatWasMadeForARefusedSlotIsGone() throws {
        _ = try sandbox.run("slot", "add", "recovery")
        let narrow = "\(sandbox.home)/narrow"
        #expect(try sandbox.run("slot", "add", "key-file", narrow).status == 0)
        let (new, old) = ("\(sandbox.home)/new", try sandbox.file("old", String(repeating: "k", count: 40)))
        for path in [new, old] {
            expectOneLine(try sandbox.run("slot", "add", "key-file", path, "--key-file", narrow), status: 5)
        }
        #expect(try sandbox.shell("test ! -e new && test -s old").status == 0)
    }

    /// A signal ends the command while another program has the vault.
    @Test(arguments: ["TERM", "HUP"]) func aKeyFileWhoseMakingASignalEndsIsGone(signal: String) throws {
        let directory = try PosixDirectory(FilePath("\(sandbox.home)/.local/share/tokenvault"))
        let held = try directory.open("default.vault", .readWrite)
        #expect(try held.tryLock(.exclusive))
        let ended = try sandbox.shell(
            """
            "$V" slot add key-file new --timeout 5 2>/dev/null & child=$!
            until [ -e new ] || ! kill -0 $child 2>/dev/null; do :; done
            test -e new && echo made
            kill -\(signal) $child
            wait $child
            echo $?
            test -e new && echo left
            """)
        #expect(ended.text == "made\n\(signal == "TERM" ? 143 : 129)\n", "\(ended.text)\(ended.error)")
        held.unlock()
        #expect(try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/new").status == 0)
        #expect(try sandbox.run("list", "--key-file", "\(sandbox.home)/new").status == 0)
    }

    @Test func statusTellsWhichSlotOpenedTheVault() throws {
        let key = try sandbox.run("slot", "add", "recovery").text
        let file = try sandbox.file("written down", key)
        let byKey = try sandbox.run("status", "--passphrase-file", file)
        #expect(byKey.text.contains("unlocked by: slot 2, recovery\n"), "\(byKey.text)")
        #expect(try sandbox.run("status", "--json").text.contains(#""unlockedBy":1,"scope":"all""#))
        #expect(try !sandbox.run("status", without: "VAULTCTL_KEY_FILE").text.contains("unlocked by"))
    }
}
