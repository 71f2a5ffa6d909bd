#if OAuth
import Crypto
import Foundation
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

/// How the client of `vaultctl login` authenticates, and sessions of the client itself.
@Suite(.tags(.provider), .from(.all)) struct ClientCommandTests {
    private static let issuer = "https://id.example.com"

    /// Writes `text` into a file that only its owner can read.
    private func file(_ name: String, _ text: String, in home: SignInHome) throws -> String {
        let path = "\(home.path)/\(name)"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try #require(chmod(path, 0o600) == 0)
        return path
    }

    private func settings(_ home: SignInHome, _ flow: String = "browser") throws -> String {
        try #require(home.asked(flow).last)
    }

    @Test func aKeyIsKeptAndReplacesASecret() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let key = try file(
            "key.pem", P256.Signing.PrivateKey().pemRepresentation, in: home)
        let secret = try file("secret", "not-a-real-secret\n", in: home)
        let first = try home.signIn(at: Self.issuer, "--client-secret-file", secret).end()
        #expect(first.status == 0, "\(first.error)")
        #expect(try settings(home).contains(#""clientSecret":"not-a-real-secret""#))
        for more in [["--client-key-file", key, "--client-key-id", "key-1"], []] {
            let outcome = try home.start(["login", "work", "--no-browser"] + more).end()
            #expect(outcome.status == 0, "\(outcome.error)")
            let asked = try settings(home)
            #expect(!asked.contains("not-a-real-secret") && asked.contains(#""keyID":"key-1""#))
            #expect(asked.contains("BEGIN PRIVATE KEY"))
        }
        #expect(
            try home.run("login", "work", "--no-browser", "--client-secret-file", secret).status == 0)
        #expect(try !settings(home).contains("clientIdentity"))
        #expect(
            try home.run("login", "work", "--no-browser", "--client-authentication", "none").status == 0)
        #expect(try !settings(home).contains("not-a-real-secret"))
    }

    /// Another key or secret keeps how the client authenticates, but not the name of the key before.
    @Test func aNewKeyKeepsTheTeam() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let key = try file("key.pem", P256.Signing.PrivateKey().pemRepresentation, in: home)
        let first = try home.signIn(
            at: Self.issuer, "--client-key-file", key, "--client-key-id", "key-1", "--client-team", "TEAM"
        ).end()
        #expect(first.status == 0, "\(first.error)")
        let unnamed = try home.run("login", "work", "--no-browser", "--client-key-file", key)
        #expect(unnamed.status == 64 && unnamed.error.contains("--client-key-id"), "\(unnamed.error)")
        let named = try home.run(
            "login", "work", "--no-browser", "--client-key-file", key, "--client-key-id", "key-2")
        #expect(named.status == 0, "\(named.error)")
        let asked = try settings(home)
        #expect(asked.contains(#""teamID":"TEAM""#) && asked.contains(#""keyID":"key-2""#))
    }

    @Test func aMethodIsKept() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let secret = try file("secret", "not-a-real-secret\n", in: home)
        let method = "client_secret_post"
        let first = try home.signIn(
            at: Self.issuer, "--client-secret-file", secret, "--client-authentication", method
        ).end()
        #expect(first.status == 0, "\(first.error)")
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        #expect(
            try home.run("login", "work", "--no-browser", "--client-secret-file", secret).status == 0)
        for asked in home.asked("browser") { #expect(asked.contains(#""method":"\#(method)""#)) }
        #expect(try home.run("login", "work", "--no-browser", "--client-id", "other").status == 0)
        #expect(try !settings(home).contains(method) && !settings(home).contains("not-a-real-secret"))
    }

    @Test(arguments: [
        (["--client-authentication", "apple"], "unknown --client-authentication"),
        (["--client-authentication", "client_secret_post"], "the client's secret is missing"),
        (["--client-authentication", "private_key_jwt"], "the client's key is missing"),
        (["--client-key-id", "a"], "the client's key is missing"),
        (["--client-key-id", "a b"], "--client-key-id is not visible ASCII"),
        (["--client-team", "a"], "the client's key is missing"),
        (["--client-team", "T", "--client-key-file", "KEY"], "--client-team needs --client-key-id"),
        (["--client-key-file", "KEY", "--client-secret-file", "KEY"], "both a secret and a key"),
        (["--client-key-file", "KEY", "--client-authentication", "none"], "none excludes"),
        (["--client-key-id", "a", "--client-authentication", "none"], "none excludes"),
        (["--client-key-file", "NONE"], "client's key file"),
        (["--client-key-file", "NOKEY"], "no private key in PEM"),
        (["--client-key-file", "ENCRYPTED"], "is encrypted"),
        (["--client-credentials", "--device"], "--client-credentials excludes"),
        (["--client-credentials", "--redirect-port", "1"], "--client-credentials excludes"),
    ])
    func mistakesComeBeforeTheSignIn(_ arguments: [String], _ reason: String) throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let key = try file("key.pem", P256.Signing.PrivateKey().pemRepresentation, in: home)
        let encrypted = try file("encrypted.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n", in: home)
        let noKey = try file("no-key.pem", "-----BEGIN PUBLIC KEY-----\n", in: home)
        let files = ["KEY": key, "NOKEY": noKey, "NONE": "\(home.path)/none", "ENCRYPTED": encrypted]
        let words = arguments.map { files[$0] ?? $0 }
        let outcome = try home.start(
            ["login", "work", "--issuer", Self.issuer, "--client-id", "fake"] + words
        ).end()
        #expect(outcome.status != 0 && outcome.error.contains(reason), "\(outcome.error)")
        #expect(home.asked("browser").isEmpty)
    }

    /// A service asks for its own tokens, and later programs renew them without a user.
    @Test func theClientsOwnTokensAreRenewed() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let service = provider.facts["clients"]["service"]
        let secret = try file("secret", service["secret"].text + "\n", in: home)
        let login = try home.start([
            "login", "work", "--issuer", provider.issuer, "--client-id", service["id"].text,
            "--client-secret-file", secret, "--client-credentials", "--scope", "read",
        ]).end()
        #expect(login.status == 0 && login.error.isEmpty, "\(login.error)")
        let first = try home.run("token", "work")
        #expect(first.status == 0 && !first.output.isEmpty, "\(first.error)")
        try await home.expire()
        let second = try home.run("token", "work")
        #expect(second.status == 0 && second.output != first.output, "\(second.error)")
        #expect(try home.run("token", "work", "--renew").output != second.output)
        #expect(try home.run("login", "work").status == 0)
        #expect(try home.run("logout", "work").status == 0)
    }

    @Test func verboseShowsTheErrorText() throws {
        let home = try SignInHome(nil)
        let refusal =
            #"[[ $line != *'"wantsErrorTexts":true'* ]] || echo '{"errorText":{"_0":"invalid_grant: fake words"}}'"#
        let failure = #"echo '{"failed":{"_0":{"kind":"invalidGrant"}}}'"#
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired),
            refresh: "\(refusal); \(failure)", revoke: "\(refusal); \(failure)"
        ).place(in: home)
        #expect(try home.signIn(at: Self.issuer).end().status == 0)
        let note = "vaultctl: note: the provider says: invalid_grant: fake words\n"
        for (command, status) in [("token", Int32(3)), ("logout", 8)] {
            if command == "logout" { #expect(try home.signIn(at: Self.issuer).end().status == 0) }
            let silent = try home.run(command, "work")
            #expect(silent.status == status && !silent.error.contains("fake words"), "\(silent.error)")
            #expect(try home.signIn(at: Self.issuer).end().status == 0)
            let verbose = try home.run(command, "work", "--verbose")
            #expect(verbose.status == status && verbose.error.hasPrefix(note), "\(verbose.error)")
        }
    }

    @Test func anUnusableLifetimeIsReportedOnce() throws {
        let home = try SignInHome(nil)
        let unusable = #","hasUnusableLifetime":true"#
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", unusable),
            refresh: SaidWorker.refreshed("fake-2", unusable)
        ).place(in: home)
        let words = "the token's lifetime is unusable"
        let login = try home.signIn(at: Self.issuer).end()
        #expect(login.status == 0 && login.error.contains(words), "\(login.error)")
        let token = try home.run("token", "work")
        #expect(token.status == 0 && token.error.isEmpty, "\(token.error)")
        let renewed = try home.run("token", "work", "--renew")
        #expect(renewed.status == 0 && renewed.error.isEmpty, "\(renewed.error)")
        let bounded = try home.run("token", "work", "--min-valid", "10m")
        #expect(bounded.status == 1 && bounded.output.isEmpty, "\(bounded.output)")
        #expect(bounded.error.contains(words) && bounded.error.contains("leave --min-valid out"))
    }

    @Test func aMissingTokenTypeIsReported() throws {
        let home = try SignInHome(nil)
        let tokens = #"{"accessToken":"fake-1","tokenType":"Bearer"}"#
        try SaidWorker(
            signIn:
                #"echo '{"signedIn":{"_0":{"tokens":\#(tokens),"metadata":"{}","authentication":"none","isTypeAssumed":true}}}'"#
        ).place(in: home)
        let login = try home.signIn(at: Self.issuer).end()
        #expect(login.status == 0 && login.error.contains("bearer is assumed"), "\(login.error)")
    }

    /// The other service's token is printed, and nothing of it is stored.
    @Test func aTokenIsExchangedForAnotherService() async throws {
        let server = try await ScriptedServer { asked in
            asked.form["subject_token"] == nil
                ? .json(#"{"access_token":"fake-own","token_type":"Bearer","expires_in":3600}"#)
                : asked.form["audience"] == "billing"
                    ? .json(#"{"access_token":"fake-other","token_type":"Bearer","expires_in":60}"#)
                    : asked.form["audience"] == "lost"
                        ? .dropped
                        : .json(
                            #"{"error":"invalid_target","error_description":"No such API."}"#, status: 400)
        }
        let home = try SignInHome(nil)
        let secret = try file("secret", "not-a-real-secret\n", in: home)
        let login = try home.start([
            "login", "work", "--issuer", server.origin, "--client-id", "fake", "--token-endpoint",
            "\(server.origin)/token", "--client-secret-file", secret, "--client-credentials", "--audience",
            "own", "--resource", "urn:own",
        ]).end()
        #expect(login.status == 0, "\(login.error)")
        let other = try home.run("token", "work", "--audience", "billing", "--scope", "read")
        #expect(other.status == 0 && other.output == "fake-other", "\(other.error)")
        let asked = try #require(server.asked.last)
        #expect(asked.form["subject_token"] == "fake-own" && asked.form["scope"] == "read")
        // Parameters of the profile's own request do not go to the other service.
        #expect(!asked.body.contains("audience=own") && !asked.body.contains("urn%3Aown"), "\(asked.body)")
        let bounded = try home.run("token", "work", "--audience", "billing", "--min-valid", "30m")
        #expect(bounded.error.contains("less than --min-valid"), "\(bounded.error)")
        let lost = try home.run("token", "work", "--audience", "lost")
        #expect(lost.status == 10 && lost.output.isEmpty, "\(lost.error)")
        #expect(try home.run("token", "work").output == "fake-own")
        let refused = try home.run("token", "work", "--audience", "none", "--verbose")
        #expect(refused.status == 5 && refused.output.isEmpty, "\(refused.output)")
        #expect(refused.error.contains("invalid_target: No such API."))
        for (more, reason) in [
            (["--id", "--audience", "billing"], "remove one of them"),
            (["--audience", ""], "--audience is empty"),
            (["--resource", "api"], "not an absolute address"), (["--scope", "a b"], "more than one scope"),
        ] {
            let mistaken = try home.start(["token", "work"] + more).end()
            #expect(mistaken.status == 64 && mistaken.error.contains(reason), "\(mistaken.error)")
        }
        #expect(server.asked.count == 5)
    }

    /// What the client asks for itself is not for a user's sign-in, and the other way round.
    @Test func aChangeOfTheFlowKeepsNoScopesAndParameters() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let secret = try file("secret", "not-a-real-secret\n", in: home)
        let first = try home.start([
            "login", "work", "--issuer", Self.issuer, "--client-id", "fake", "--client-credentials",
            "--client-secret-file", secret, "--scope", "own", "--parameter", "api_key=fake",
        ]).end()
        #expect(first.status == 0, "\(first.error)")
        #expect(try home.run("login", "work").status == 0)
        let kept = try settings(home, "client_credentials")
        #expect(kept.contains("api_key") && kept.contains(#""own""#))
        #expect(try home.run("login", "work", "--device").status == 0)
        let user = try settings(home, "device")
        #expect(!user.contains("api_key") && !user.contains(#""own""#) && user.contains("not-a-real-secret"))
        let none = try home.run(
            "login", "work", "--client-credentials", "--client-authentication", "none")
        #expect(none.status == 64 && none.error.contains("needs a client with"), "\(none.error)")
    }

    @Test func aTeamAndAKeyNameCanBeTakenBack() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let key = try file("key.pem", P256.Signing.PrivateKey().pemRepresentation, in: home)
        let first = try home.signIn(
            at: Self.issuer, "--client-key-file", key, "--client-key-id", "key-1",
            "--client-authentication", "private_key_jwt"
        ).end()
        #expect(first.status == 0, "\(first.error)")
        let apple = try home.run("login", "work", "--no-browser", "--client-team", "TEAM")
        #expect(apple.status == 0, "\(apple.error)")
        #expect(try !settings(home).contains("private_key_jwt") && settings(home).contains("TEAM"))
        let both = try home.run(
            "login", "work", "--client-team", "TEAM", "--client-authentication", "private_key_jwt")
        #expect(both.status == 64 && both.error.contains("--client-team excludes"), "\(both.error)")
        let plain = try home.run(
            "login", "work", "--no-browser", "--client-team", "", "--client-key-id", "")
        #expect(plain.status == 0, "\(plain.error)")
        #expect(try !settings(home).contains("TEAM") && !settings(home).contains("key-1"))
    }

    /// The page of the provider, in a browser that notes what it is started with.
    @Test func theBrowsersSessionIsEndedToo() throws {
        let home = try SignInHome(nil)
        func place(_ metadata: String) throws {
            try SaidWorker(signIn: SaidWorker.signedIn("fake-1", metadata: metadata)).place(in: home)
            #expect(try home.signIn(at: Self.issuer).end().status == 0)
        }
        try home.script("browser", "printf '%s\\n' \"$1\" >>'\(home.path)/opened'")
        for (metadata, address) in [
            ("{}", nil), (#"{\"end_session_endpoint\":\"https://other.example.com/end\"}"#, nil),
            (#"{\"end_session_endpoint\":\"file:///etc/passwd\"}"#, nil),
            (
                #"{\"end_session_endpoint\":\"https://id.example.com/end?a=b\"}"#,
                "https://id.example.com/end?a=b&client_id=fake"
            ),
        ] as [(String, String?)] {
            try place(metadata)
            let outcome = try home.run("logout", "work", "--browser")
            #expect(outcome.status == (address == nil ? 8 : 0), "\(outcome.error)")
            if let address {
                #expect(outcome.error.contains(address))
            } else {
                // The session continues.
                #expect(try home.run("token", "work").output == "fake-1")
            }
        }
        #expect(try home.run("token", "work").status == 3)
        // The page is shown even if the provider could not be notified.
        try SaidWorker(
            signIn: SaidWorker.signedIn(
                "fake-1",
                metadata:
                    #"{\"end_session_endpoint\":\"https://id.example.com/end\",\"revocation_endpoint\":\"https://id.example.com/r\"}"#
            ), revoke: #"echo '{"failed":{"_0":{"kind":"notSent"}}}'"#
        ).place(in: home)
        #expect(try home.signIn(at: Self.issuer).end().status == 0)
        let untold = try home.run("logout", "work", "--browser")
        #expect(untold.status == 8 && untold.error.contains("https://id.example.com/end?client_id=fake"))
    }
}
#endif
