import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

@testable import vaultctl

/// Programs that ask in a window, where there is no terminal: scripts play them.
@Suite(.tags(.programs), .from(.usual)) struct AskingProgramTests {
    private static let passphrase = "fake correct 100% horse"

    /// A home with a vault that needs a user's answer. The program derives no key before the answer.
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox.withVault()
        // A typed recovery key opens the vault, and trying it costs nothing.
        try #require(try sandbox.run("slot", "add", "recovery").status == 0)
        sandbox.environment["VAULTCTL_KEY_FILE"] = nil
    }

    private func script(_ name: String, _ text: String) throws -> String {
        try sandbox.file(name, "#!/bin/bash\n" + text, mode: 0o700)
    }

    /// An askpass that notes that it was asked and says no.
    private func refusing(_ name: String = "askpass") throws -> String {
        try script(name, "printf '%s\\n' \"$1\" >\"$HOME/\(name).asked\"\nexit 1\n")
    }

    private func wasAsked(_ name: String = "askpass") -> Bool {
        let path = "\(sandbox.home)/\(name).asked"
        defer { unlink(path) }
        return access(path, F_OK) == 0
    }

    /// A pinentry that answers GETPIN as told, in a directory to be put into `PATH`.
    private func pinentry(_ answer: String) throws -> String {
        let directory = "\(sandbox.home)/bin"
        mkdir(directory, 0o700)
        _ = try script(
            "bin/pinentry",
            """
            echo 'OK Pleased to meet you'
            while IFS= read -r line; do
                printf '%s\\n' "$line" >>"$HOME/pinentry.asked"
                case $line in
                    OPTION*) echo 'ERR 83886254 Unknown option <Pinentry>' ;;
                    GETPIN) \(answer) ;;
                    *) echo '# a comment'; echo OK ;;
                esac
            done
            """)
        return "\(directory):/usr/bin:/bin"
    }

    @Test func aPassphraseThatIsEnteredInAWindowOpensTheVault() throws {
        let sandbox = try Sandbox()
        sandbox.environment["VAULTCTL_KEY_FILE"] = nil
        let file = try sandbox.file("passphrase", Self.passphrase)
        #expect(try sandbox.run("init", "--passphrase-file", file).status == 0)
        let askpass = try sandbox.file(
            "askpass",
            """
            #!/bin/bash
            printf '%s\\n' "$1" >"$HOME/prompt"
            env >"$HOME/env"
            printf '%s\\r\\nand more\\n' '\(Self.passphrase)'
            """, mode: 0o700)
        let asked = try sandbox.run(
            "store", "k", input: "not a real token",
            with: ["DISPLAY": ":7", "SSH_ASKPASS": askpass, "OTHER_SECRET": "fake-secret"])
        #expect(asked.status == 0, "\(asked.error)")
        #expect(
            try sandbox.shell("cat prompt").text == "vaultctl, for \(sandbox.vault): Passphrase: \n")
        let environment = try sandbox.shell("cat env").text
        #expect(environment.contains("DISPLAY=:7") && !environment.contains("fake-secret"))
        // Pinentry escapes special characters in its answer line.
        mkdir("\(sandbox.home)/bin", 0o700)
        _ = try sandbox.file(
            "bin/pinentry",
            """
            #!/bin/bash
            echo OK
            while IFS= read -r line; do
                printf '%s\\n' "$line" >>"$HOME/said"
                [[ $line == GETPIN ]] && printf 'S STATUS\\nD fake%%20correct\\nD  100%%25 horse\\n'
                echo OK
            done
            """, mode: 0o700)
        let shown = try sandbox.run(
            "retrieve", "k",
            with: ["WAYLAND_DISPLAY": "wayland-0", "PATH": "\(sandbox.home)/bin:/usr/bin:/bin"])
        #expect(shown.status == 0 && shown.text == "not a real token", "\(shown.error)")
        let said = try sandbox.shell("cat said").text
        #expect(said.hasPrefix("OPTION lc-ctype=C.UTF-8\nSETDESC "))
        #expect(said.contains("for the vault \(sandbox.vault).\n"))
        #expect(said.contains("\nSETPROMPT Passphrase: \nGETPIN\n"))
    }

    /// A child ignores the signals that its parent ignores. Without a remedy, the program would not learn how
    /// the asking program ended. The answer would then count for nothing.
    @Test func theAnswerCountsWhereAParentIgnoresTheEndOfPrograms() throws {
        let sandbox = try Sandbox.withVault()
        let askpass = try sandbox.file("askpass", "#!/bin/bash\ncat \"$HOME/recovery\"\n", mode: 0o700)
        let outcome = try sandbox.shell(
            """
            "$V" slot add recovery >recovery && printf fake | "$V" store k || exit
            unset VAULTCTL_KEY_FILE
            DISPLAY=:7 SSH_ASKPASS='\(askpass)' /usr/bin/python3 -c '
            import os, signal, sys
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            os.execv(sys.argv[1], sys.argv[1:])' "$V" retrieve k
            """)
        #expect(outcome.text == "fake", "\(outcome)")
    }

    @Test func itIsAskedOnlyWhereSSHWouldAsk() throws {
        let askpass = try refusing()
        let variables = { ["SSH_ASKPASS": askpass].merging($0) { $1 } }
        // Status 4 means that no program asked, and status 1 that the user cancelled.
        let cases: [(Int32, [String: String])] = [
            (4, [:]),
            (1, ["DISPLAY": ":7"]),
            (1, ["WAYLAND_DISPLAY": "wayland-0"]),
            (4, ["DISPLAY": ":7", "SSH_ASKPASS_REQUIRE": "never"]),
            (1, ["DISPLAY": ":7", "SSH_ASKPASS_REQUIRE": "prefer"]),
            (4, ["SSH_ASKPASS_REQUIRE": "prefer"]),
            (1, ["SSH_ASKPASS_REQUIRE": "force"]),
        ]
        for (status, extra) in cases {
            let outcome = try sandbox.run("list", with: variables(extra))
            #expect(outcome.status == status, "\(extra): \(outcome.error)")
            #expect(wasAsked() == (status == 1), "\(extra)")
        }
        let quiet = try sandbox.run("list", "--no-input", with: variables(["DISPLAY": ":7"]))
        #expect(quiet.status == 4 && !wasAsked())
        let refused = try sandbox.run("list", with: variables(["DISPLAY": ":7"]))
        expectOneLine(refused, status: 1)
        #expect(refused.error.contains("nothing was entered"))
        #expect(wasAsked())
    }

    @Test func ourOwnVariableGoesFirst() throws {
        let others = try refusing("theirs")
        let ours = try refusing("ours")
        let outcome = try sandbox.run(
            "list", with: ["DISPLAY": ":7", "SSH_ASKPASS": others, "TOKENVAULT_ASKPASS": ours])
        #expect(outcome.status == 1)
        #expect(wasAsked("ours") && !wasAsked("theirs"))
    }

    @Test func aTerminalIsAskedFirstUnlessTheProgramIsPreferred() throws {
        sandbox.environment["DISPLAY"] = ":7"
        sandbox.environment["SSH_ASKPASS"] = try refusing()
        let usual = try PseudoTerminal(sandbox, ["list"])
        try usual.expect("Passphrase: ")
        try usual.type("\u{4}")
        #expect(try usual.end() == 1)
        #expect(!wasAsked())
        sandbox.environment["SSH_ASKPASS_REQUIRE"] = "prefer"
        let preferred = try PseudoTerminal(sandbox, ["list"])
        #expect(try preferred.end() == 1)
        #expect(wasAsked() && !preferred.shown.contains("Passphrase"))
    }

    @Test(arguments: [
        ("echo 'ERR 83886179 Operation cancelled <Pinentry>'", Int32(1)),
        ("echo 'ERR 83886142 Timeout <Pinentry>'", 10),
        ("echo 'ERR 83886085 No display <Pinentry>'", 1),
        ("echo 'D half %4'; echo OK", 1),
        ("exit", 1),
    ])
    func aPinentryThatGivesNothingIsTold(answer: String, status: Int32) throws {
        let path = try pinentry(answer)
        let outcome = try sandbox.run("list", with: ["DISPLAY": ":7", "PATH": path])
        expectOneLine(outcome, status: status)
        #expect(wasAsked("pinentry"))
        #expect(outcome.error.contains("nothing was entered") == answer.contains("cancelled"))
        // Pinentry replaces a terminal only in a session with windows.
        #expect(try sandbox.run("list", with: ["PATH": path]).status == 4)
        #expect(
            try sandbox.run(
                "list", with: ["DISPLAY": ":7", "PATH": path, "SSH_ASKPASS_REQUIRE": "never"]
            ).status == 4)
        #expect(!wasAsked("pinentry"))
    }

    @Test func aProgramThatDoesNotRunIsNamed() throws {
        let outcome = try sandbox.run("list", with: ["DISPLAY": ":7", "SSH_ASKPASS": "/no/askpass"])
        #expect(outcome.status != 0 && outcome.status != 4)
        #expect(outcome.error.contains("/no/askpass"))
    }

    @Test(arguments: ["exec 1>&-; exec /bin/sleep 1000", "/bin/sleep 1000"])
    func theTimeBoundsWhoDoesNotAnswer(waiting: String) throws {
        let askpass = try script("askpass", "echo $$ >\"$HOME/process\"\n\(waiting)\n")
        let outcome = try sandbox.run(
            "list", "--timeout", "4", with: ["DISPLAY": ":7", "SSH_ASKPASS": askpass])
        expectOneLine(outcome, status: 10)
        // The process has ended.
        let text = try sandbox.shell("cat process").text.split(separator: "\n").first
        let process = try #require(text.flatMap { pid_t(String($0)) })
        #expect(kill(process, 0) == -1 && errno == ESRCH)
    }

    @Test func linesOfPinentryAreReadAndWritten() throws {
        #expect(Pinentry.escaped("100%\n\t\u{7f}é") == "100%25%0A%09%7Fé")
        var secret: [UInt8] = []
        try Pinentry.decode(Array("a%25%0a%c3%A9 b".utf8)[...], onto: &secret, limit: 7)
        #expect(secret == Array("a%\né b".utf8))
        for wrong in ["%", "%4", "%4g", "%-1"] {
            #expect(throws: SystemFailure.self) {
                try Pinentry.decode(Array(wrong.utf8)[...], onto: &secret, limit: 100)
            }
        }
        secret = []
        #expect(throws: SystemFailure(.fileTooLarge, "pinentry")) {
            try Pinentry.decode(Array("four".utf8)[...], onto: &secret, limit: 3)
        }
    }

    @Test(arguments: [
        // More bytes than a pipe holds, after the line that counts.
        "printf 'fake word\\n'; head -c 3000000 /dev/zero",
        // A child process that holds the output open.
        "sleep 1000 & echo $! >\"$HOME/child\"; printf 'fake word\\n'",
    ])
    func whatAnAskpassDoesBehindItsLineKeepsNobody(_ behaviour: String) throws {
        let askpass = try script("askpass", behaviour + "\nexit 1\n")
        let asked = try sandbox.shell(
            """
            DISPLAY=:7 SSH_ASKPASS='\(askpass)' timeout 300 "$V" retrieve k </dev/null
            status=$?
            # Ended with who started it, whether somebody has waited for it or not; this shell has no end before.
            while [ -e child ] && grep -qs '^State:.[^ZX]' "/proc/$(cat child)/status"; do :; done
            exit $status
            """)
        #expect(asked.status == 1, "\(asked.error)")
    }

    @Test func anAskpassThatDoesNotEndIsEnded() throws {
        let askpass = try script("askpass", "printf 'fake word\\n'; exec sleep 1000\n")
        let asked = try sandbox.shell(
            "DISPLAY=:7 SSH_ASKPASS='\(askpass)' timeout 300 \"$V\" retrieve k </dev/null; exit $?")
        #expect(asked.status == 1, "\(asked.error)")
    }

    @Test func aPinentryThatOnlyTalksTimesOut() throws {
        let path = try pinentry("while echo 'S PROGRESS x'; do :; done")
        let asked = try sandbox.shell(
            "PATH='\(path)' DISPLAY=:7 timeout 300 \"$V\" retrieve k --timeout 1 </dev/null; exit $?")
        #expect(asked.status == 10, "\(asked.error)")
    }
}
