#if OAuth
import Foundation
import Glibc
import TestLanes
import Testing
import TokenVaultAuth

/// `vaultctl login --provider`, and the commands of the article about it.
@Suite(.tags(.provider), .from(.all)) struct PresetCommandTests {
    private static let article = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/TokenVaultOAuth/Documentation.docc/SigningInAtProviders.md")

    /// The commands of the article, in words.
    private static func commands() throws -> [[String]] {
        try String(contentsOf: article, encoding: .utf8).replacing("\\\n", with: " ")
            .split(separator: "\n").filter { $0.hasPrefix("$ ") }
            .map { $0.dropFirst(2).split(separator: " ").map(String.init) }
    }

    @Test func theArticleHasACommandForEachPreset() throws {
        let named = try Self.commands().compactMap { words in
            words.firstIndex(of: "--provider").map { words[$0 + 1] }
        }
        #expect(Set(named) == Set(ProviderPreset.all.map(\.name)))
    }

    /// Each command asks for a sign-in at its provider, and the name alone asks for the same again.
    @Test func eachCommandOfTheArticleWorks() throws {
        for words in try Self.commands() {
            try #require(words.first == "vaultctl")
            let home = try SignInHome(nil)
            try SaidWorker().place(in: home)
            let secret = "\(home.path)/secret.txt"
            try "not-a-real-secret\n".write(toFile: secret, atomically: true, encoding: .utf8)
            try #require(chmod(secret, 0o600) == 0)
            var arguments = words.dropFirst().map { $0 == "secret.txt" ? secret : $0 }
            if !arguments.contains("--device") { arguments.append("--no-browser") }
            let outcome = try home.start(arguments).end()
            #expect(outcome.status == 0, "\(words): \(outcome.error)")
            let again = try home.start(["login", "work"]).end()
            #expect(again.status == 0, "\(again.error)")
            let asked = home.asked(arguments.contains("--device") ? "device" : "browser")
            #expect(asked.count == 2)
            let name = try #require(words.firstIndex(of: "--provider").map { words[$0 + 1] })
            let preset = try #require(ProviderPreset.named(name))
            let tenant = words.firstIndex(of: "--tenant").map { words[$0 + 1] }
            for request in asked {
                let request = request.replacing(#"\/"#, with: "/")
                #expect(
                    request.contains(#""issuer":"\#(try #require(preset.issuer(for: tenant)))""#),
                    "\(request)")
                #expect(request.contains("login/oauth/access_token") == (name == "github"), "\(request)")
                #expect(request.contains("access_type") == (name == "google"), "\(request)")
                if words.contains("--audience") {
                    #expect(request.contains(#""audience":"https://api.example.com/""#))
                }
            }
        }
    }

    @Test(arguments: [
        (["--provider", "gogle"], "there is no such provider"), (["--provider", "azure"], "--tenant"),
        (["--provider", "google", "--tenant", "a"], "leave --tenant out"),
        (["--provider", "okta", "--tenant", "https://a.okta.com"], "as in id.example.com"),
        (["--provider", "google", "--issuer", "https://a.example"], "both name the provider"),
        (["--issuer", "https://a.example", "--tenant", "a"], "--provider as well"),
        (["--issuer", "https://a.example", "--device-endpoint", "https://a.example/d"], "--token-endpoint"),
        (["--issuer", "https://a.example", "--token-endpoint", "http://a.example/t"], "https address"),
    ])
    func mistakesComeBeforeTheSignIn(_ arguments: [String], _ reason: String) throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let outcome = try home.start(["login", "work", "--client-id", "fake"] + arguments).end()
        #expect(outcome.status == 64 && outcome.error.contains(reason), "\(outcome.error)")
        #expect(home.asked("browser").isEmpty)
    }

    /// A provider without metadata, by its addresses, and later by the profile's name.
    @Test func endpointsAreKept() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let first = try home.signIn(
            at: "https://id.example.com", "--token-endpoint", "https://id.example.com/t",
            "--authorization-endpoint", "https://id.example.com/a"
        ).end()
        #expect(first.status == 0, "\(first.error)")
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        for request in home.asked("browser") {
            #expect(
                request.contains(
                    #""endpoints":{"authorization":"https:\/\/id.example.com\/a","token":"https:\/\/id.example.com\/t"}"#
                ), "\(request)")
        }
        // Endpoints are kept for another client of the provider. A sign-in with both options starts over.
        #expect(try home.run("login", "work", "--client-id", "b", "--no-browser").status == 0)
        #expect(home.asked("browser").last?.contains("endpoints") == true)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        #expect(home.asked("browser").last?.contains("endpoints") == false)
    }
}
#endif
