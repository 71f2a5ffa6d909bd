import TestLanes
import Testing
import TokenVaultAuth

@testable import vaultctl

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Keys, services and attributes of any characters, on the command line.
@Suite(.tags(.programs), .from(.usual)) struct NameTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox.withVault() }

    @Test(arguments: ["", "\n", "a\tb\r\n", "\u{1b}[2J", "\u{9b}", " ", "a\\nb"])
    func anyNameIsKept(_ name: String) throws {
        #expect(
            try sandbox.run("store", name, "--service", name, "--attribute", "\(name)=\(name)", input: "x")
                .status == 0)
        #expect(try sandbox.run("retrieve", name, "--service", name).text == "x")
        let info = try sandbox.run("info", name, "--service", name, "--json")
        #expect(info.status == 0, "\(info.error)")
        #expect(try sandbox.run("list", "--service", name).text == PrintedName.line(name) + "\n")
        #expect(try sandbox.run("rename", name, "other", "--service", name).status == 0)
        #expect(try sandbox.run("list", "--all-services").text == PrintedName.line(name) + "\tother\n")
        #expect(try sandbox.run("delete", "other", "--service", name).status == 0)
    }

    /// The name and the issuer of a profile come from a vault that others may write.
    @Test func aProfileControlsNothing() throws {
        let settings = SignInSettings(
            issuer: "https://id.example.com/\u{202e}a\u{200b}", clientID: "fake")
        let profile = Profile(settings, metadata: "{}", authentication: .none)
        for (name, content) in [
            ("a\u{2066}b", String(decoding: try JSONEncoder().encode(profile), as: UTF8.self)),
            ("c\u{202e}d", "{}"),
        ] {
            let stored = try sandbox.run(
                "store", ProfileStore.profiles + name, "--service", ProfileStore.service, input: content)
            try #require(stored.status == 0, "\(stored.error)")
        }
        let profiles = try sandbox.run("profiles")
        #expect(profiles.text == "a?b\tsigned-out\thttps://id.example.com/?a?\n", "\(profiles.text)")
        #expect(profiles.error.hasPrefix("vaultctl: note: c?d is not a profile"), "\(profiles.error)")
    }

    @Test func namesAreEscaped() throws {
        #expect(
            PrintedName.line("a\nb\r\t\u{1b}\u{7f}\u{9b}\u{2028}é") == #"a\nb\r\t\u{1b}\u{7f}\u{9b}\u{2028}é"#
        )
        #expect(PrintedName.screen("a\nb\u{202e}") == #"a\nb?"#)
        #expect(PrintedName.line(#"a\nb"#) == #"a\\nb"# && PrintedName.line("a\n\\") == #"a\n\\"#)
        for name in [#"DOMAIN\admin"#, #"DOMAIN\user"#, #"a\"#, #"\"#, "é"] {
            #expect(PrintedName.line(name) == name)
        }
        #expect(try sandbox.run("store", "a\nb", "--attribute", "c\u{1b}=d\ne", input: "x").status == 0)
        let info = try sandbox.run("info", "a\nb").text
        #expect(
            info.contains(#"key:         a\nb"# + "\n")
                && info.contains(#"attribute:   c\u{1b}=d\ne"# + "\n"), "\(info)")
        let json = try sandbox.run("list", "--json").text
        #expect(json.contains(#""key":"a\nb""#) && json.contains(#""c\u001b":"d\ne""#), "\(json)")
    }

    /// Characters that turn, hide or tag the text around them.
    @Test func infoShowsNoCharacterThatATerminalObeys() throws {
        let hidden = "a\u{202e}\u{200b}\u{e0041}b"
        let stored = try sandbox.run(
            "store", hidden, "--label", hidden, "--attribute", "\(hidden)=\(hidden)", input: "x")
        #expect(stored.status == 0, "\(stored.error)")
        let info = try sandbox.run("info", hidden).text
        #expect(
            info.contains("key:         a???b\n") && info.contains("label:       a???b\n")
                && info.contains("attribute:   a???b=a???b\n"), "\(info)")
        #expect(!info.unicodeScalars.contains { $0.properties.generalCategory == .format }, "\(info)")
    }

    @Test func whatAnUnsetVariableLeavesIsNoName() throws {
        #expect(try sandbox.run("store", "k", input: "x").status == 0)
        #expect(try sandbox.run("list", with: ["VAULTCTL_SERVICE": ""]).text == "k\n")
        let long = try sandbox.run("store", String(repeating: "k", count: 1_025), input: "x")
        #expect(long.status == 64 && long.error.contains("at most 1,024 bytes"), "\(long.error)")
    }

    /// What was taken out as lines of JSON comes back with every name as it was.
    @Test func linesOfJSONKeepAnyName() throws {
        let lines = try sandbox.file("lines", #"{"service":"","key":"\n\u0000","value":"x"}"# + "\n")
        let imported = try sandbox.run("import", "--format", "ndjson", lines)
        #expect(imported.status == 0, "\(imported.error)")
        #expect(try sandbox.run("list", "--service", "").text == #"\n\u{0}"# + "\n")
    }
}
