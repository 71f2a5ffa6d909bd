import TestLanes
import Testing

@Suite(.tags(.programs), .from(.usual)) struct ItemCommandTests {
    @Test func storedRetrievedReplacedDeleted() throws {
        let sandbox = try Sandbox.withVault()
        #expect(try sandbox.run("store", "k", input: "fake-1\n").status == 0)
        #expect(try sandbox.run("retrieve", "k").text == "fake-1")
        #expect(try sandbox.run("store", "k", input: "fake-2").status == 0)
        #expect(try sandbox.run("retrieve", "k").text == "fake-2")
        let deleted = try sandbox.run("delete", "k")
        #expect(deleted.status == 0 && deleted.output.isEmpty && deleted.error.isEmpty)
        expectOneLine(try sandbox.run("retrieve", "k"), status: 3)
        expectOneLine(try sandbox.run("delete", "k"), status: 3)
        #expect(try sandbox.run("delete", "k", "--ignore-missing").status == 0)
    }

    @Test func theNewlineOfASingleLineIsDroppedUnlessBinary() throws {
        let sandbox = try Sandbox.withVault()
        let everyByte = (0...255).map { UInt8($0) } + [0x0a]
        _ = try sandbox.run("store", "binary", "--binary", bytes: everyByte)
        #expect(try sandbox.run("retrieve", "binary").output == everyByte)
        // A file of several lines, such as a private key, is kept whole.
        for lines in ["a\n\n", "fake-begin\nfake-end\n", "\na", "\n\n"] {
            _ = try sandbox.run("store", "lines", input: lines)
            #expect(try sandbox.run("retrieve", "lines").text == lines)
        }
        _ = try sandbox.run("store", "one", input: "\n")
        let one = try sandbox.run("retrieve", "one")
        #expect(one.status == 0 && one.output.isEmpty)
        // An empty secret is a secret.
        _ = try sandbox.run("store", "empty", input: "")
        let empty = try sandbox.run("retrieve", "empty")
        #expect(empty.status == 0 && empty.output.isEmpty)
    }

    /// As a producer that failed leaves standard input.
    @Test(arguments: ["", "\n"])
    func anEmptySecretReplacesNoOtherUnlessAllowed(_ input: String) throws {
        let sandbox = try Sandbox.withVault()
        // An empty secret may take a free key, or replace another empty secret.
        for _ in 1...2 { #expect(try sandbox.run("store", "k", input: input).status == 0) }
        #expect(try sandbox.run("store", "k", input: "fake").status == 0)
        let refused = try sandbox.run("store", "k", input: input)
        expectOneLine(refused, status: 1)
        #expect(refused.error.contains("--allow-empty"))
        expectOneLine(try sandbox.run("store", "k", "--if-generation", "3", input: input), status: 1)
        expectOneLine(try sandbox.run("store", "k", "--if-generation", "2", input: input), status: 9)
        expectOneLine(try sandbox.run("store", "k", "--if-absent", input: input), status: 9)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        let info = try sandbox.run("info", "k", "--json").text
        #expect(info.contains(#""generation":3"#))
        #expect(try sandbox.run("store", "k", "--allow-empty", input: input).status == 0)
        let empty = try sandbox.run("retrieve", "k")
        #expect(empty.status == 0 && empty.output.isEmpty)
    }

    /// Nothing but Return at the prompt.
    @Test func nothingTypedReplacesNothing() throws {
        let sandbox = try Sandbox.withVault()
        #expect(try sandbox.run("store", "k", input: "fake").status == 0)
        let method = ["--key-file", "\(sandbox.home)/vault.key"]
        let terminal = try PseudoTerminal(sandbox, ["store", "k"] + method)
        try terminal.expect("Secret: ")
        try terminal.type("\r")
        #expect(try terminal.end() == 1)
        #expect(terminal.shown.contains("nothing was entered"))
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        let allowed = try PseudoTerminal(sandbox, ["store", "k", "--allow-empty"] + method)
        try allowed.expect("Secret: ")
        try allowed.type("\r")
        #expect(try allowed.end() == 0)
        #expect(try sandbox.run("retrieve", "k").output.isEmpty)
    }

    @Test func theLimitIsOneMebibyte() throws {
        let sandbox = try Sandbox.withVault()
        let most = [UInt8](repeating: 0x61, count: 1 << 20)
        #expect(try sandbox.run("store", "k", bytes: most + [0x0a]).status == 0)
        #expect(try sandbox.run("retrieve", "k").output == most)
        expectOneLine(try sandbox.run("store", "k", "--binary", bytes: most + [0x0a]), status: 1)
        expectOneLine(try sandbox.run("store", "k", bytes: most + [0x61]), status: 1)
        let tenTimes = try sandbox.shell("head -c 10485760 /dev/zero | \"$V\" store k")
        expectOneLine(tenTimes, status: 1)
        // The stored value is unchanged.
        #expect(try sandbox.run("retrieve", "k").output == most)
    }

    @Test func keysThatStartWithADash() throws {
        let sandbox = try Sandbox.withVault()
        #expect(try sandbox.run("store", "--", "-k", input: "fake").status == 0)
        #expect(try sandbox.run("retrieve", "--", "-k").text == "fake")
        #expect(try sandbox.run("info", "--json", "--", "-k").status == 0)
    }

    @Test func servicesAreApart() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", "--service", "a", input: "in-a")
        _ = try sandbox.run("store", "k", input: "in-b", with: ["VAULTCTL_SERVICE": "b"])
        #expect(try sandbox.run("retrieve", "k", "--service=a").text == "in-a")
        #expect(try sandbox.run("retrieve", "k", "--service=b").text == "in-b")
        expectOneLine(try sandbox.run("retrieve", "k"), status: 3)
        #expect(try sandbox.run("list", "--service", "a").text == "k\n")
        #expect(try sandbox.run("list", "--all-services").text == "a\tk\nb\tk\n")
        // An option overrides the environment.
        let beaten = try sandbox.run("retrieve", "k", "--service", "a", with: ["VAULTCTL_SERVICE": "b"])
        #expect(beaten.text == "in-a")
    }

    @Test func jsonShapes() throws {
        let sandbox = try Sandbox.withVault()
        let stored = try sandbox.run(
            "store", "k", "--label", "a \"b\"", "--attribute", "host=x=y", "--attribute", "e=", "--expires",
            "2030-01-02T03:04:05Z", "--policy", "after-first-unlock", "--json", input: "fake\u{1}\\\n\n")
        #expect(stored.text == #"{"service":"default","key":"k","generation":1}"# + "\n")
        let members = #""policy":"after-first-unlock","label":"a \"b\"","attributes":{"e":"","host":"x=y"},"#
        let times = #/"created":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ","modified":"[0-9T:Z-]{20}",/#
        let item = try sandbox.run("retrieve", "k", "--json").text
        let parts = item.split(separator: times, maxSplits: 1)
        try #require(parts.count == 2, "\(item)")
        #expect(parts[0] == #"{"service":"default","key":"k","value":"fake\u0001\\\n\n","# + members)
        #expect(parts[1] == #""expires":"2030-01-02T03:04:05Z","generation":1}"# + "\n")

        let listed = try sandbox.run("list", "--json").text
        #expect(listed.hasPrefix(#"[{"service":"default","key":"k","# + members))
        #expect(listed.hasSuffix(#""generation":1}]"# + "\n"))
        #expect(!listed.contains("fake"))
        #expect(try sandbox.run("info", "k", "--json").text == String(listed.dropFirst().dropLast(2)) + "\n")

        _ = try sandbox.run("store", "b", bytes: [0xff, 0x00, 0x61, 0x62])
        let binary = try sandbox.run("retrieve", "b", "--json").text
        #expect(binary.contains(#""valueBase64":"/wBhYg==""#))
        #expect(!binary.contains("label") && !binary.contains("expires") && !binary.contains("attributes"))
        #expect(try sandbox.run("delete", "b", "--json").text == "{\"deleted\":1}\n")
        #expect(try sandbox.run("list", "--prefix", "zz", "--json").text == "[]\n")
    }

    @Test func generationsGuardChanges() throws {
        let sandbox = try Sandbox.withVault()
        #expect(try sandbox.run("store", "k", "--if-absent", input: "1").status == 0)
        expectOneLine(try sandbox.run("store", "k", "--if-absent", input: "2"), status: 9)
        expectOneLine(try sandbox.run("store", "k", "--if-generation", "99", input: "2"), status: 9)
        #expect(try sandbox.run("retrieve", "k").text == "1")
        #expect(try sandbox.run("store", "k", "--if-generation", "1", input: "2").status == 0)
        #expect(try sandbox.run("retrieve", "k").text == "2")
        expectOneLine(try sandbox.run("delete", "k", "--if-generation", "1"), status: 9)
        expectOneLine(try sandbox.run("set", "k", "--label", "l", "--if-generation", "1"), status: 9)
        #expect(try sandbox.run("delete", "k", "--if-generation", "2").status == 0)
        expectOneLine(try sandbox.run("delete", "k", "--if-generation", "2"), status: 3)
    }

    @Test func detailsChangeWithoutTheSecret() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run(
            "store", "k", "--attribute", "a=1", "--attribute", "b=2", "--label", "old",
            "--expires", "1h", input: "fake")
        let set = try sandbox.run(
            "set", "k", "--attribute", "b=3", "--attribute", "c=4", "--remove-attribute", "a", "--label=",
            "--expires", "never", "--policy", "when-unlocked")
        #expect(set.status == 0, "\(set.error)")
        let info = try sandbox.run("info", "k", "--json").text
        #expect(info.contains(#""policy":"when-unlocked","attributes":{"b":"3","c":"4"},"created""#))
        #expect(!info.contains("expires") && !info.contains("label"))
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        expectOneLine(try sandbox.run("set", "absent", "--label", "l"), status: 3)
        // A store without attributes keeps the present ones.
        _ = try sandbox.run("store", "k", input: "new")
        #expect(try sandbox.run("info", "k", "--json").text.contains(#""attributes":{"b":"3","c":"4"}"#))
    }

    @Test func attributesFind() throws {
        let sandbox = try Sandbox.withVault()
        for (key, host) in [("a1", "x"), ("a2", "y"), ("b1", "x")] {
            _ = try sandbox.run("store", key, "--attribute", "host=\(host)", input: "fake")
        }
        #expect(try sandbox.run("list").text == "a1\na2\nb1\n")
        #expect(try sandbox.run("list", "--prefix", "a").text == "a1\na2\n")
        #expect(try sandbox.run("list", "--attribute", "host=x").text == "a1\nb1\n")
        #expect(try sandbox.run("list", "--attribute", "host=x", "--prefix", "b").text == "b1\n")
    }

    @Test func renaming() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "a", input: "fake-a")
        _ = try sandbox.run("store", "b", input: "fake-b")
        expectOneLine(try sandbox.run("rename", "a", "b"), status: 9)
        expectOneLine(try sandbox.run("rename", "absent", "c"), status: 3)
        #expect(try sandbox.run("rename", "a", "c").status == 0)
        #expect(try sandbox.run("retrieve", "c").text == "fake-a")
        #expect(try sandbox.run("list").text == "b\nc\n")
    }

    @Test func emptyingAServiceNeedsAYes() throws {
        let sandbox = try Sandbox.withVault()
        for key in ["a", "b"] { _ = try sandbox.run("store", key, "--service", "s", input: "fake") }
        _ = try sandbox.run("store", "kept", input: "fake")
        expectOneLine(try sandbox.run("delete", "--all", "--service", "s"), status: 5)
        #expect(try sandbox.run("list", "--service", "s").text == "a\nb\n")
        let deleted = try sandbox.run("delete", "--all", "--service", "s", "--yes", "--json")
        #expect(deleted.text == "{\"deleted\":2}\n")
        #expect(try sandbox.run("list", "--all-services").text == "default\tkept\n")
    }

    @Test func theMemoryBackendForgets() throws {
        let sandbox = try Sandbox()
        let stored = try sandbox.run("store", "k", "--backend", "memory", input: "fake")
        #expect(stored.status == 0)
        #expect(stored.error.contains("forgets"))
        expectOneLine(try sandbox.run("retrieve", "k", "--backend=memory"), status: 3)
        #expect(
            try sandbox.run("status", "--json", with: ["VAULTCTL_BACKEND": "memory"]).text
                == #"{"backend":"memory","state":"unlocked","items":0,"agent":false}"# + "\n")
        expectOneLine(try sandbox.run("list", "--backend", "secret-service"), status: 8)
    }
}
