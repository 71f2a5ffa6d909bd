import Glibc
import TestLanes
import Testing

@Suite(.tags(.programs), .from(.usual)) struct VaultCommandTests {
    @Test func initNeverOverwrites() throws {
        let sandbox = try Sandbox.withVault()
        let key = try String(contentsOfFile: "\(sandbox.home)/vault.key")
        #expect(key.wholeMatch(of: #/[0-9a-f]{64}\n/#) != nil)
        var information = stat()
        #expect(stat("\(sandbox.home)/vault.key", &information) == 0 && information.st_mode & 0o777 == 0o600)
        #expect(stat(sandbox.vault, &information) == 0 && information.st_mode & 0o777 == 0o600)
        _ = try sandbox.run("store", "k", input: "fake")
        expectOneLine(try sandbox.run("init"), status: 9)
        // A refused command does not even create a key file.
        expectOneLine(try sandbox.run("init", "--key-file", "\(sandbox.home)/other"), status: 9)
        #expect(access("\(sandbox.home)/other", F_OK) != 0)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        // A second vault with the same key file.
        let second = try sandbox.run("init", "--vault", "\(sandbox.home)/deep/er/second.vault", "--json")
        #expect(second.text.hasPrefix(#"{"vault":"\#(sandbox.home)/deep/er/second.vault","slots":[{"id":"#))
        #expect(try String(contentsOfFile: "\(sandbox.home)/vault.key") == key)
    }

    @Test func readingOnlyWritesNothing() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        let before = try sandbox.shell("cksum < '\(sandbox.vault)'").text
        #expect(try sandbox.run("retrieve", "k", "--read-only").text == "fake")
        #expect(try sandbox.run("list", "--read-only").text.contains("k"))
        #expect(try sandbox.run("verify", "--read-only").status == 0)
        #expect(try sandbox.run("status", "--read-only", "--json").text.contains(#""readOnly":"asked""#))
        expectOneLine(try sandbox.run("store", "k", "--read-only", input: "other"), status: 1)
        expectOneLine(try sandbox.run("delete", "k", "--read-only"), status: 1)
        expectOneLine(try sandbox.run("destroy", "--yes", "--read-only"), status: 1)
        #expect(try sandbox.shell("cksum < '\(sandbox.vault)'").text == before)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    @Test func quietStatusIsAnExitStatusAlone() throws {
        let sandbox = try Sandbox.withVault()
        let unlocked = try sandbox.run("status", "--quiet")
        #expect(unlocked.status == 0 && unlocked.text.isEmpty)
        let locked = try sandbox.run("status", "--quiet", without: "VAULTCTL_KEY_FILE")
        #expect(locked.status == 4 && locked.text.isEmpty)
        let absent = try sandbox.run("status", "--quiet", "--vault", "\(sandbox.home)/none.vault")
        #expect(absent.status == 8 && absent.text.isEmpty)
    }

    @Test func xdgDirectoriesAndOptions() throws {
        let sandbox = try Sandbox()
        sandbox.environment["XDG_DATA_HOME"] = "\(sandbox.home)/data"
        sandbox.environment["XDG_STATE_HOME"] = "relative/is/ignored"
        #expect(try sandbox.run("init").status == 0)
        #expect(access("\(sandbox.home)/data/tokenvault/default.vault", F_OK) == 0)
        #expect(access("\(sandbox.home)/.local/state/tokenvault", F_OK) == 0)
        let other = try sandbox.run(
            "init", "--vault", "\(sandbox.home)/o.vault",
            with: ["VAULTCTL_VAULT": "\(sandbox.home)/e.vault", "VAULTCTL_STATE_DIR": "\(sandbox.home)/st"])
        #expect(other.status == 0)
        #expect(access("\(sandbox.home)/o.vault", F_OK) == 0)
        #expect(access("\(sandbox.home)/e.vault", F_OK) != 0)
        #expect(access("\(sandbox.home)/st", F_OK) == 0)
    }

    @Test func filesThatAreNoVaultToOpen() throws {
        let sandbox = try Sandbox()
        expectOneLine(try sandbox.run("retrieve", "k"), status: 8)
        #expect(try sandbox.run("init").status == 0)
        let text = try sandbox.file("text", "this is no vault, and long enough to be none by its contents")
        let empty = try sandbox.file("empty", "")
        symlink(sandbox.vault, "\(sandbox.home)/link")
        chmod(sandbox.vault, 0o640)
        for path in [
            text, empty, sandbox.home, "\(sandbox.home)/link", "\(sandbox.home)/none", sandbox.vault,
        ] {
            for command in [["retrieve", "k"], ["store", "k"], ["list"], ["verify"], ["status"]] {
                if command == ["status"], path.hasSuffix("none") { continue }
                let outcome = try Child.run(
                    (command + ["--vault", path]).map { Array($0.utf8) },
                    environment: sandbox.environment, input: .bytes(Array("fake".utf8)))
                expectOneLine(outcome, status: 8)
                // A file that is missing, or that is open to other users, is named by its path.
                let isNamed = path.hasSuffix("none") || path == sandbox.vault
                #expect(outcome.error.contains(path) == isNamed, "\(outcome.error)")
            }
            expectOneLine(try sandbox.run("destroy", "--yes", "--vault", path), status: 8)
        }
        chmod(sandbox.vault, 0o600)
        #expect(try sandbox.run("list").status == 0)
        #expect(access(text, F_OK) == 0)
    }

    @Test func wrongKeyAndNoKey() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        let wrong = try sandbox.file("wrong", String(repeating: "0", count: 64) + "\n")
        for command in [["retrieve", "k"], ["list"], ["delete", "k"], ["verify"], ["slot", "remove", "1"]] {
            let bytes = command.map { Array($0.utf8) }
            let key = ["--key-file", wrong].map { Array($0.utf8) }
            expectOneLine(
                try Child.run(bytes + key, environment: sandbox.environment), status: 5, hiding: [wrong])
            var environment = sandbox.environment
            environment["VAULTCTL_KEY_FILE"] = nil
            // Without a method and a terminal, the error is "locked" rather than "not found".
            expectOneLine(try Child.run(bytes, environment: environment), status: 4)
            expectOneLine(
                try Child.run(bytes + [Array("--no-input".utf8)], environment: environment), status: 4)
        }
        expectOneLine(
            try sandbox.run("retrieve", "k", "--key-file", "\(sandbox.home)/none"), status: 1)
        expectOneLine(try sandbox.run("init", "--vault", "v", without: "VAULTCTL_KEY_FILE"), status: 4)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    @Test func keyFilesThatOthersCanReadAreWarnedAbout() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        chmod("\(sandbox.home)/vault.key", 0o640)
        let outcome = try sandbox.run("retrieve", "k")
        #expect(outcome.status == 0 && outcome.text == "fake")
        #expect(outcome.error == "vaultctl: note: other users can read the key file: run chmod 600 on it\n")
    }

    @Test func statusTellsWhatIsKnown() throws {
        let sandbox = try Sandbox()
        #expect(
            try sandbox.run("status", "--json").text
                == #"{"backend":"file","vault":"\#(sandbox.vault)","state":"absent","agent":false}"# + "\n")
        #expect(try sandbox.run("init").status == 0)
        _ = try sandbox.run("store", "k", input: "fake")
        let unlocked = try sandbox.run("status", "--json").text
        #expect(
            unlocked.hasPrefix(
                #"{"backend":"file","vault":"\#(sandbox.vault)","state":"unlocked","items":1,"agent":false,"#)
        )
        #expect(unlocked.contains(#""rollbackProtection":"anchored","device":"enrolled""#))
        let locked = try sandbox.run("status", "--json", without: "VAULTCTL_KEY_FILE")
        #expect(locked.status == 0)
        #expect(locked.text.contains(#""state":"locked","agent":false"#))
        #expect(try sandbox.run("status").text.contains("state:       unlocked\n"))
    }

    @Test func verifySaysWhere() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        let clean = try sandbox.run("verify", "--json")
        #expect(clean.status == 0)
        #expect(clean.text.contains(#""clean":true"#) && clean.text.contains(#""problems":[]"#))
        // A wrong byte in the zeros that are written ahead.
        let descriptor = open(sandbox.vault, O_RDWR | O_CLOEXEC)
        try #require(descriptor >= 0)
        let offset = lseek(descriptor, 0, SEEK_END) - 100
        try #require(pwrite(descriptor, "x", 1, offset) == 1)
        close(descriptor)
        let damaged = try sandbox.run("verify", "--json")
        #expect(damaged.status == 7)
        #expect(damaged.text.contains(#""clean":false"#))
        #expect(damaged.text.contains(#""problems":[{"offset":\#(offset),"#), "\(damaged.text)")
        #expect(damaged.error.hasPrefix("vaultctl: ") && damaged.error.split(separator: "\n").count == 1)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    /// A user with write access to the state directory could take the anchor away. An older copy of the vault
    /// would then go unseen.
    @Test func aStateDirectoryOfOthersIsRefused() throws {
        let sandbox = try Sandbox.withVault()
        let state = "\(sandbox.home)/.local/state/tokenvault"
        for (mode, isRefused) in [(0o777, true), (0o720, true), (0o755, false), (0o700, false)] {
            try #require(chmod(state, mode_t(mode)) == 0)
            let outcome = try sandbox.run("store", "k", input: "fake")
            if isRefused {
                expectOneLine(outcome, status: 8, hiding: ["fake"])
                #expect(outcome.error.contains("state directory"))
            } else {
                #expect(outcome.status == 0, "\(outcome.error)")
            }
        }
    }

    /// A command that repairs a copy of the keybag says so: the damage may come from a failing disk or from
    /// an attacker.
    @Test func aMendedKeybagIsTold() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        let descriptor = open(sandbox.vault, O_RDWR | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try #require(pwrite(descriptor, "x", 1, 4_096 + 64) == 1)
        #expect(try sandbox.run("verify").status == 7)
        let mending = try sandbox.run("retrieve", "k")
        #expect(mending.status == 0 && mending.text == "fake")
        #expect(
            mending.error == "vaultctl: note: a damaged copy of the keybag was replaced by the one in use\n")
        #expect(try sandbox.run("verify").status == 0)
        #expect(try sandbox.run("retrieve", "k").error.isEmpty)
    }

    @Test func onAnotherDeviceItemsStayDark() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "here", input: "fake-here")
        _ = try sandbox.run("store", "anywhere", "--policy", "when-unlocked", input: "fake-anywhere")
        let copy = "\(sandbox.home)/copy.vault"
        #expect(try sandbox.shell("cp -p .local/share/tokenvault/default.vault copy.vault").status == 0)
        sandbox.environment["VAULTCTL_VAULT"] = copy
        sandbox.environment["VAULTCTL_STATE_DIR"] = "\(sandbox.home)/another-device"
        #expect(try sandbox.run("retrieve", "anywhere").text == "fake-anywhere")
        expectOneLine(try sandbox.run("retrieve", "here"), status: 6)
        let listed = try sandbox.run("list")
        #expect(listed.status == 6)
        #expect(listed.text == "anywhere\n")
        #expect(listed.error.hasPrefix("vaultctl: 1 item is not shown"))
    }

    @Test func anOlderCopyPutBackIsNoticed() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake-1")
        _ = try sandbox.shell("cp -p .local/share/tokenvault/default.vault old")
        _ = try sandbox.run("store", "k", input: "fake-2")
        #expect(try sandbox.shell("cp -p old .local/share/tokenvault/default.vault").status == 0)
        expectOneLine(try sandbox.run("retrieve", "k"), status: 7)
    }

    @Test func slotsAndPassphrase() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        let old = try sandbox.file("old", "correct horse\nsecond line is not read\n")
        let new = try sandbox.file("new", "battery staple")
        let empty = try sandbox.file("empty", "\n")
        expectOneLine(
            try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", empty), status: 64)
        expectOneLine(try sandbox.run("slot", "add", "passphrase"), status: 5)
        let added = try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", old)
        #expect(added.status == 0 && added.text == "2\n", "\(added.error)")
        #expect(try sandbox.run("slot", "list", "--json").text.contains(#"{"id":2,"kind":"passphrase","#))
        #expect(try sandbox.run("retrieve", "k", "--passphrase-file", old).text == "fake")
        expectOneLine(try sandbox.run("retrieve", "k", "--passphrase-file", empty), status: 5)

        expectOneLine(
            try sandbox.run("passphrase", "--passphrase-file", new, "--new-passphrase-file", old), status: 5)
        let changed = try sandbox.run("passphrase", "--passphrase-file", old, "--new-passphrase-file", new)
        #expect(changed.status == 0)
        #expect(changed.error.contains("old passphrase"))
        expectOneLine(try sandbox.run("retrieve", "k", "--passphrase-file", old), status: 5)
        // The passphrase comes from a descriptor, and the rest of that stream is the secret.
        let piped = try sandbox.shell(
            "printf 'battery staple\\nfake-2' | \"$V\" store k --passphrase-fd 0 && "
                + "\"$V\" retrieve k --passphrase-fd 3 3< <(echo 'battery staple')")
        #expect(piped.text == "fake-2", "\(piped.error)")

        expectOneLine(try sandbox.run("slot", "remove", "7"), status: 3)
        #expect(try sandbox.run("slot", "remove", "1").status == 0)
        expectOneLine(try sandbox.run("retrieve", "k"), status: 5)
        expectOneLine(try sandbox.run("slot", "remove", "2", "--passphrase-file", new), status: 1)
    }

    @Test func theLastPassphraseIsAskedAbout() throws {
        let sandbox = try Sandbox.withVault()
        let file = try sandbox.file("passphrase", "correct horse")
        _ = try sandbox.run("slot", "add", "passphrase", "--new-passphrase-file", file)
        expectOneLine(try sandbox.run("slot", "remove", "2"), status: 5)
        #expect(try sandbox.run("slot", "remove", "2", "--yes").status == 0)
        #expect(try sandbox.run("slot", "list").text.split(separator: "\n").count == 1)
    }

    @Test func anInheritedDescriptorThatIsNotThereIsNoFile() throws {
        let sandbox = try Sandbox.withVault()
        // Without an early check, the vault file itself would get the number 3.
        expectOneLine(try sandbox.run("retrieve", "k", "--passphrase-fd", "3"), status: 1)
    }

    @Test func aPipeThatNobodyWritesToTimesOut() throws {
        let sandbox = try Sandbox.withVault()
        try #require(mkfifo("\(sandbox.home)/fifo", 0o600) == 0)
        let fifo = "\(sandbox.home)/fifo"
        for option in ["--passphrase-file", "--key-file"] {
            expectOneLine(
                try sandbox.run("retrieve", "k", option, fifo, "--timeout", "0.2"), status: 10)
        }
        let silent = try sandbox.shell("\"$V\" store k --timeout 0.2 0<>\(fifo)")
        expectOneLine(silent, status: 10)
    }

    @Test func compactingAndDestroying() throws {
        let sandbox = try Sandbox.withVault()
        for _ in 0..<3 { _ = try sandbox.run("store", "k", bytes: [UInt8](repeating: 1, count: 300_000)) }
        let compacted = try sandbox.run("compact", "--json")
        let sizes = try #require(
            compacted.text.wholeMatch(of: #/{"sizeBefore":(\d+),"sizeAfter":(\d+)}\n/#))
        #expect(try #require(Int(sizes.output.1)) > 900_000)
        #expect(try #require(Int(sizes.output.2)) < 600_000)
        #expect(try sandbox.run("retrieve", "k").output.count == 300_000)
        expectOneLine(try sandbox.run("destroy"), status: 5)
        #expect(access(sandbox.vault, F_OK) == 0)
        #expect(try sandbox.run("destroy", "--yes").status == 0)
        #expect(access(sandbox.vault, F_OK) != 0)
        #expect(try sandbox.shell("find \"$HOME/.local\" -type f").output.isEmpty)
        expectOneLine(try sandbox.run("destroy", "--yes"), status: 8)
    }
}

extension String {
    init(contentsOfFile path: String) throws {
        let outcome = try Child.run(program: "/bin/cat", [Array(path.utf8)], environment: [:])
        self = outcome.text
    }
}
