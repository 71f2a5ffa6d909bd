import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

@testable import vaultctl

/// The names that a shell completes, through the completion script and bash.
@Suite(.tags(.programs), .from(.usual)) struct CompletionTests {
    let home: CommandHome

    init() throws { home = try CommandHome() }

    /// Returns what bash offers for the last word of a command line.
    private func offers(_ line: String, with extra: [String] = []) throws -> [String] {
        let script = """
            eval "$("$0" --generate-completion-script bash)"
            vaultctl() { "$VAULTCTL" "$@"; }
            VAULTCTL=$0 COMP_LINE=$1 COMP_POINT=${#1}
            read -r -a COMP_WORDS <<<"$COMP_LINE"
            [[ $COMP_LINE != *' ' ]] || COMP_WORDS+=('')
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _vaultctl vaultctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let outcome = try Program.capture(
            "/bin/bash", ["-c", script, Program.beside("vaultctl"), line],
            environment: extra + home.environment + ["PATH=/usr/bin:/bin"])
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        return outcome.output.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("-") }.sorted()
    }

    /// Returns each file below the home with its size and the time of its last change.
    private func files() throws -> [String] {
        let found = try Program.capture(
            "/usr/bin/find", [home.path, "-printf", "%p %s %T@\\n"], environment: ["PATH=/usr/bin"])
        try #require(found.status == 0, "\(found.error)")
        return found.output.split(separator: "\n").map(String.init).sorted()
    }

    private func store(_ key: String, _ options: String...) throws {
        try #require(
            try home.run(["store", key, "--key-file", home.keyFile] + options, input: "fake").status == 0)
    }

    @Test func namesComeFromAnUnlockedVaultAlone() throws {
        try store("access_token")
        try store("access_log", "--policy", "after-first-unlock")
        try store("refresh_token")
        try store("other", "--service", "com.example.app")
        #expect(try offers("vaultctl retrieve ") == [])
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try offers("vaultctl retrieve ") == ["access_log", "access_token", "refresh_token"])
        #expect(try offers("vaultctl delete acc") == ["access_log", "access_token"])
        #expect(try offers("vaultctl info --service com.example.app ") == ["other"])
        // The new name of an item is not one that exists.
        #expect(try offers("vaultctl rename ") == ["access_log", "access_token", "refresh_token"])
        #expect(try offers("vaultctl rename other ") == [])
        // `retrieve` prints the item of this policy, but the vault is locked.
        #expect(try home.run("lock").status == 0)
        #expect(try home.run("retrieve", "access_log").output == "fake")
        #expect(try offers("vaultctl retrieve ") == [])
    }

    /// The completion script of bash expands each offer as a word of a command.
    @Test func namesAreOfferedAsTheyAre() throws {
        let planted = "\(home.path)/planted"
        let names = [
            "$(touch \(planted))", "$HOME", "`touch \(planted)`", "a:b", "back\\slash", "caf\u{e9}", "it's",
            "with space", "{a,b}", "~",
        ]
        for name in names + ["two\nlines", "turned\u{202e}"] { try store(name) }
        #expect(
            try home.run(["store", "--key-file", home.keyFile, "--", "-dash"], input: "fake").status == 0)
        let offered = try offers("vaultctl retrieve --key-file \(home.keyFile) ")
        #expect(offered == names.sorted())
        #expect(try !SmallFile.exists(FilePath(planted)))
        // As the program gives them, before the helper above leaves out what begins with a dash.
        let raw = try home.run(
            "---completion", "retrieve", "--", "positional@0", "4", "0", "vaultctl", "retrieve", "--key-file",
            home.keyFile, "")
        #expect(
            raw.status == 0 && raw.output == names.sorted().joined(separator: "\n") + "\n", "\(raw.error)")
        #expect(NameCompletion.escaped("a:b\\c d", for: "zsh") == "a\\:b\\\\c d")
        #expect(NameCompletion.escaped("a:b\\c d", for: "fish") == "a:b\\c d")
    }

    @Test func aKeyFileOpensTheVaultForNamesAndWritesNothing() throws {
        try store("access_token")
        let before = try files()

        #expect(try offers("vaultctl retrieve --key-file \(home.keyFile) ") == ["access_token"])
        #expect(
            try offers("vaultctl retrieve ", with: ["VAULTCTL_KEY_FILE=\(home.keyFile)"]) == ["access_token"])
        #expect(try offers("vaultctl retrieve --key-file \(home.path)/missing ") == [])
        #expect(
            try offers("vaultctl retrieve --vault \(home.path)/missing --key-file \(home.keyFile) ") == [])
        #expect(try offers("vaultctl retrieve --passphrase-file \(home.keyFile) ") == [])
        // An agent would have a socket here.
        #expect(try files() == before)

    }

    @Test func wordsAreReadAsTheShellReadsThem() {
        #expect(CommandWords.withoutQuotes(#"'a b'"c\"d"\ e"#) == #"a bc"d e"#)
        #expect(CommandWords.withoutQuotes(#""a\b""#) == #"a\b"#)
        #expect(CommandWords.withoutQuotes(#"'a\b'"#) == #"a\b"#)
        #expect(CommandWords.withoutQuotes("a\\") == "a")
        #expect(CommandWords(["vaultctl", "retrieve", "--service", "=", "'my app'"]).service == "my app")
        #expect(CommandWords(["vaultctl", "retrieve", "--service=a=b", "--no-agent"]).service == "a=b")
        #expect(CommandWords(["vaultctl", "retrieve", "--service"]).service == nil)
        #expect(CommandWords(["vaultctl", "retrieve", "--", "--service", "a"]).service == nil)
        #expect(CommandWords([]).service == nil)
    }
}
