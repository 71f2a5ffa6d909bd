import Glibc
import TestLanes
import Testing

@testable import vaultctl

/// Mistakes on the command line: one line, status 64, and nothing repeated that was typed.
@Suite(.tags(.programs), .from(.usual)) struct UsageTests {
    private static let typed = "fake-secret-typed-by-mistake"

    @Test(arguments: [
        ["store", "key", typed], ["store", "--service", "s", "key", typed], ["store"],
        ["store", "key", "--\(typed)"], ["store", "key", "--label"], ["store", "key", "-\(typed)"],
        ["store", "key", "---\(typed)"], ["store", "key", "--binary=\(typed)"],
        ["store", "key", "--binary="],
        ["store", "key", "--policy", typed], ["store", "key", "--expires", typed],
        ["store", "key", "--attribute", typed], ["store", "key", "--timeout", typed],
        ["store", "key", "--if-generation", typed], ["store", "key", "--if-generation", "9007199254740992"],
        ["store", "key", "--if-absent", "--if-generation", "1"], ["store", "key", "--backend", typed],
        ["store", "key", "--passphrase-fd", typed], ["store", "key", "--vault="],
        ["store", "key", "--key-file", typed, "--passphrase-file", typed], ["store", "key", "--vault="],
        ["retrieve", "key", typed], ["retrieve", "--", "key", typed], ["retrieve", "key", "--\(typed)"],
        ["retrieve"], ["retrieve", "key", "--json=\(typed)"], ["retrieve", "key", "--timeout", "0"],
        ["retrieve", "key", "--timeout", "nan"], ["retrieve", "key", "--passphrase-fd", "-1"],
        ["delete"], ["delete", "key", "--all"], ["set", "key"], ["rename", "key"], ["rename", "key", "key"],
        ["slot", "add", typed], ["slot", "add", "passphrase", typed], ["slot", "add", "key-file"],
        ["slot", "remove", typed], ["slot", typed], [typed], ["--\(typed)"], ["help", typed, typed],
        ["init", "--backend", "memory"], ["verify", "--backend", "memory"], ["benchmark", "--items", typed],
        ["list", "--service", "s", "--all-services"], ["passphrase", "--key-file", typed],
        ["--generate-completion-script", typed], ["migrate"], ["migrate", "--from", "file"],
        ["migrate", "--from", "file", "--to", "file"], ["migrate", "--from", "file", "--to", typed],
        ["migrate", "--from", "file", "--to", "memory", "--delete"],
        ["migrate", "--from", "memory", "--from-vault", typed, "--to", "file"],
        ["migrate", "--from", "memory", "--to", "file", "--on-conflict", typed],
        ["migrate", "--from", "memory", "--to", "file", "--map-policy", typed],
        ["migrate", "--from", "memory", "--to", "file", "--map-policy", "when-unlocked=\(typed)"],
        ["migrate", "--from", "memory", "--to", "file", "--backend", "file"],
        ["migrate", "--from", "memory", "--to", "file", "--to-key-file="],
        ["migrate", "--from", "file", "--to", "memory", "--to-key-file", typed],
        ["migrate", "--from", "memory", "--to", "file", "--service", "s", "--all-services"],
    ])
    func mistakesAreOneLine(_ arguments: [String]) throws {
        let sandbox = try Sandbox()
        let outcome = try Child.run(
            arguments.map { Array($0.utf8) }, environment: sandbox.environment,
            input: .bytes(Array("fake-token".utf8)))
        expectOneLine(outcome, status: 64, hiding: [Self.typed, "fake-token"])
    }

    /// The message shows the program's own name for the command, not the typed word.
    @Test(
        arguments: [
            (["retreive", "k"], "retrieve"), (["stauts"], "status"), (["exprot", "x"], "export"),
            (["int"], "init"),
            (["slot", "lst"], "slot list"), (["device", "enroll"], "device enrol"),
            (["help", "salvge"], "salvage"),
            (["help", "slot", "ad"], "slot add"), (["tokne"], "token"), (["signin"], "login"),
            (["ls"], "list"),
            (["get", "k"], "retrieve"),
            (["rm", "k"], "delete"), (["initialize"], "init"), (["initialise", "x"], "init"),
            (["version"], "--version"), (["slot", "version"], nil), (["slot", "rm"], nil), (["xyzzy"], nil),
            ([typed], nil),
        ] as [([String], String?)])
    func aMistypedCommandIsGuessed(_ arguments: [String], _ meant: String?) throws {
        let outcome = try Sandbox().run(arguments: arguments)
        expectOneLine(
            outcome, status: 64,
            hiding: [arguments.first == "help" ? arguments[1] : arguments[0]]
                .filter { !["slot", "device", "version"].contains($0) })
        let guess = outcome.error.firstMatch(of: /did you mean "vaultctl ([a-z -]+)"\?/).map { String($0.1) }
        #expect(guess == meant, "\(outcome.error)")
    }

    @Test(
        arguments: [
            (["list", "--pasphrase-file", "x"], "--passphrase-file"), (["list", "--jsno"], "--json"),
            (["store", "k", "--polcy=x"], "--policy"), (["store", "k", "--polcy", "x"], "--policy"),
            (["slot", "add", "key-file", "k", "--scpe", "all"], "--scope"),
            // The names that other programs use.
            (["list", "--format", "json"], "--json"), (["list", "--output=json"], "--json"),
            // An option of another command, and a name that resembles no option.
            (["status", "--polcy", "x"], nil), (["list", "--xyzzy-plugh"], nil),
            (["list", "--\(typed)"], nil),
        ] as [([String], String?)])
    func aMistypedOptionIsGuessed(_ arguments: [String], _ meant: String?) throws {
        let outcome = try Sandbox().run(arguments: arguments)
        let typed = arguments.first { $0.hasPrefix("--") } ?? ""
        expectOneLine(outcome, status: 64, hiding: ["--" + typed.dropFirst(2).prefix { $0 != "=" }])
        let guess = outcome.error.firstMatch(of: /did you mean (--[a-z-]+)\?/).map { String($0.1) }
        #expect(guess == meant, "\(outcome.error)")
    }

    @Test(arguments: ["--value", "--secret=x", "--token", "--data"])
    func aSecretIsNoArgument(_ option: String) throws {
        let outcome = try Sandbox().run(arguments: ["store", "k", option, "fake"])
        expectOneLine(outcome, status: 64)
        #expect(outcome.error.contains("a secret is never an argument: pipe it in"), "\(outcome.error)")
    }

    /// The values of an option that takes a few are listed, and the nearest is named; what was typed is not repeated.
    @Test(
        arguments: [
            (["store", "k", "--policy", "when-unlokced"], "when-unlocked", "after-first-unlock"),
            (["store", "k", "--policy", typed], nil, "when-passcode-set-this-device-only"),
            (["list", "--backend", "secret-servise"], "secret-service", "memory"),
            (["import", "x", "--on-conflict", "replac"], "replace", "skip"),
            (["import", "x", "--format", "ndjso"], "ndjson", "export"),
            (["migrate", "--from", "memory", "--to", "file", "--on-conflict", "skpi"], "skip", "replace"),
        ] as [([String], String?, String)])
    func aMistypedValueIsGuessed(_ arguments: [String], _ meant: String?, _ listed: String) throws {
        let outcome = try Sandbox().run(arguments: arguments)
        // If the typed text begins the right value, the message contains it anyway.
        let typed = arguments.last ?? ""
        expectOneLine(outcome, status: 64, hiding: meant?.hasPrefix(typed) == true ? [] : [typed])
        let guess = outcome.error.firstMatch(of: /did you mean ([a-z-]+)\?/).map { String($0.1) }
        #expect(guess == meant && outcome.error.contains(listed), "\(outcome.error)")
    }

    @Test func whoGivesSetNoDetailLearnsWhatTakesAValue() throws {
        let outcome = try Sandbox().run("set", "k")
        expectOneLine(outcome, status: 64)
        #expect(outcome.error.contains("--label") && outcome.error.contains("\"vaultctl store\""))
    }

    @Test func whatANewVaultLacksIsSaid() throws {
        let sandbox = try Sandbox()
        let outcome = try sandbox.run("init", without: "VAULTCTL_KEY_FILE")
        expectOneLine(outcome, status: 4)
        #expect(outcome.error.contains("--passphrase-file") && !outcome.error.contains("locked"))
    }

    @Test(arguments: [String(repeating: "k", count: 1_025), String(repeating: "é", count: 513)])
    func unusableKeys(_ key: String) throws {
        let sandbox = try Sandbox()
        let hidden = [key]
        for command in ["store", "retrieve", "info", "delete"] {
            expectOneLine(try sandbox.run(command, key, input: "x"), status: 64, hiding: hidden)
        }
        expectOneLine(try sandbox.run("rename", "key", key), status: 64, hiding: hidden)
        expectOneLine(try sandbox.run("retrieve", "key", "--service", key), status: 64)
    }

    @Test(arguments: [["retrieve"], ["store"], ["info"], []])
    func argumentsThatAreNotUTF8(_ command: [String]) throws {
        let sandbox = try Sandbox()
        let outcome = try Child.run(
            command.map { Array($0.utf8) } + [[0x6b, 0xff, 0x6b]], environment: sandbox.environment)
        expectOneLine(outcome, status: 64, hiding: ["\u{fffd}"])
    }

    @Test func variablesThatAreNotUTF8() throws {
        let outcome = try Sandbox().shell("VAULTCTL_SERVICE=$'\\xff' \"$V\" retrieve key")
        expectOneLine(outcome, status: 64)
    }

    @Test func noCommandIsHelpOnStandardError() throws {
        let sandbox = try Sandbox()
        for (arguments, word) in [
            ([], "benchmark"), (["slot"], "remove"), (["device"], "enrol"), (["keyring"], "create"),
        ] {
            let outcome = try Child.run(
                arguments.map { Array($0.utf8) }, environment: sandbox.environment)
            #expect(outcome.status == 64)
            #expect(outcome.output.isEmpty)
            #expect(outcome.error.contains(word))
            #expect(arguments.isEmpty || outcome.error.contains("\nExamples:\n"))
        }
    }

    @Test func helpTeaches() throws {
        let sandbox = try Sandbox()
        let names = try sandbox.run("help").text.matches(of: #/\n  ([a-z]+)  /#).map { String($0.output.1) }
        #expect(names.count == 33)
        for name in names {
            let asked = try sandbox.run("help", name)
            #expect(asked.status == 0)
            #expect(asked.error.isEmpty)
            #expect(asked.text.contains("\nExamples:\n"), "\(name)")
            #expect(asked.text.contains("\nExit status:\n   0  "), "\(name)")
            #expect(asked.text.contains("\n  64  "), "\(name)")
            #expect(try sandbox.run(name, "--help").text == asked.text)
        }
    }

    /// ArgumentParser breaks a line of 80 columns, which then loses its indentation. A command that is copied from there is
    /// another command.
    @Test func examplesCanBeCopied() throws {
        let sandbox = try Sandbox()
        var topics: [[String]] = [[]]
        var looked = 0
        while let topic = topics.popLast() {
            let text = try sandbox.run(arguments: ["help"] + topic).text
            topics += text.matches(of: #/\n  ([a-z]+)  +[A-Z]/#).map { topic + [String($0.output.1)] }
            looked += 1
            // The part before the usage has only text, commands and their arguments.
            let lines = text.components(before: "USAGE:")
            let end = lines.drop { !$0.hasPrefix("Examples:") }.dropFirst()
            let examples = end.prefix { !$0.hasPrefix("Exit status:") }
            let statuses = end.drop { !$0.hasPrefix("Exit status:") }.dropFirst()
            let indented = lines.filter { $0.hasPrefix("  ") }
            for line in examples.isEmpty ? indented : Array(examples + statuses) where !line.isEmpty {
                #expect(line.hasPrefix("  "), "\(topic): \(line)")
                #expect(line.utf8.count < 80, "\(topic): \(line)")
            }
            for (line, next) in zip(examples, examples.dropFirst()) where next.hasPrefix("    ") {
                #expect(line.hasSuffix(" \\"), "\(topic): \(line)")
            }
        }
        #expect(looked > 30)
    }

    @Test func theOverviewHasWhatTheEnvironmentSays() throws {
        let sandbox = try Sandbox()
        let overview = try sandbox.run("help").text
        for name in ["PASSPHRASE_FILE", "KEY_FILE", "SERVICE", "VAULT", "STATE_DIR", "BACKEND"] {
            #expect(overview.contains("\n  VAULTCTL_\(name) "), "\(name)")
        }
        let store = try sandbox.run("help", "store").text.split { $0.isWhitespace }.joined(separator: " ")
        #expect(store.contains("else VAULTCTL_SERVICE, else \"default\""), "\(store)")
        #expect(store.contains("else VAULTCTL_VAULT, else tokenvault/default.vault in XDG_DATA_HOME"))
    }

    @Test func versionNamesLibsodium() throws {
        let outcome = try Sandbox().run("--version")
        #expect(outcome.status == 0)
        #expect(outcome.text.wholeMatch(of: /vaultctl \d+\.\d+\.\d+ \(libsodium 1\.\d+\.\d+\)\n/) != nil)
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func completions(_ shell: String) throws {
        let outcome = try Sandbox().run("--generate-completion-script", shell)
        #expect(outcome.status == 0)
        #expect(outcome.text.contains("passphrase-file"))
    }

    /// The names that error lines may use are those there are.
    @Test func optionNamesAreComplete() throws {
        let help = try Sandbox().run("--experimental-dump-help").text
        var names: Set<String> = []
        for match in help.matches(of: /"kind"\s*:\s*"long",\s*"name"\s*:\s*"([a-z-]+)"/) {
            names.insert(String(match.output.1))
        }
        let known = OptionNames.valued.union(OptionNames.flags).subtracting(["generate-completion-script"])
        #expect(names == known.union(names.contains("help-hidden") ? ["help-hidden"] : []))
    }

    @Test(.enabled(if: Child.canMount)) func argumentsArriveWithoutProc() throws {
        let sandbox = try Sandbox.withVault()
        let stored = try sandbox.shell(
            """
            printf fake | unshare -rm sh -c 'mount -t tmpfs none /proc && exec "$V" store k'
            """)
        #expect(stored.status == 0, "\(stored.error)")
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        let locked = try sandbox.shell(
            """
            unshare -rm sh -c 'mount -t tmpfs none /proc && exec "$V" lock'
            """)
        #expect(locked.status == 0 && locked.error.contains("nothing was locked"), "\(locked.error)")
        // The error must not say that a command is missing.
        let unknown = try sandbox.shell(
            """
            unshare -rm sh -c 'mount -t tmpfs none /proc && exec "$V" lock --fake-option'
            """)
        expectOneLine(unknown, status: 64)
    }

    /// A library that changes the environment before the program begins, as some that are preloaded do.
    @Test func argumentsArrivePastAPreloadedLibrary() throws {
        let sandbox = try Sandbox.withVault()
        sandbox.environment["PATH"] = getenv("PATH").map { String(cString: $0) }
        let made = try sandbox.shell(
            """
            printf '#include <stdlib.h>\\n__attribute__((constructor)) static void f(void) { setenv("FAKE", "1", 1); }\\n' >early.c
            "$(command -v clang || command -v cc)" -shared -fPIC -o early.so early.c
            """)
        #expect(made.status == 0, "\(made.error)")
        let stored = try sandbox.shell(#"printf fake | LD_PRELOAD=$HOME/early.so "$V" store k"#)
        #expect(stored.status == 0, "\(stored.error)")
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        let locked = try sandbox.shell(#"LD_PRELOAD=$HOME/early.so "$V" lock"#)
        #expect(locked.status == 0 && locked.error.contains("nothing was locked"), "\(locked.error)")
    }
}

extension String {
    /// Its lines down to the one that begins with `end`.
    fileprivate func components(before end: String) -> [String] {
        split(separator: "\n", omittingEmptySubsequences: false).map(String.init).prefix {
            !$0.hasPrefix(end)
        }
        .map(\.self)
    }
}
