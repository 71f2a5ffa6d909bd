#if OAuth
import Foundation
import Glibc
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

/// `vaultctl` with a `vaultctl-oauth` that does not do what it should, and what others see of the real one.
@Suite(.tags(.provider), .from(.all)) struct WorkerTests {
    @Test(arguments: [
        ("exit 3", 8, "ended without an answer (exit status 3)"),
        ("read line; kill -9 $$", 8, "ended without an answer (exit status 137)"),
        ("read line; echo nonsense", 8, "gave an unknown answer"),
        ("read line; echo '{\"signedIn\":{}}'", 8, "gave an unknown answer"),
        ("read line; echo '{\"revoked\":{}}'", 8, "gave an unknown answer"),
        ("head -c 3000000 /dev/zero", 8, "gave an unknown answer"),
        (
            "while echo '{\"open\":{\"address\":\"https://127.0.0.1/\"}}'; do :; done", 8,
            "gave an unknown answer"
        ),
        ("echo '{\"open\":{\"address\":\"file:///etc/passwd\"}}'; cat", 8, "cannot be shown"),
        ("echo '{\"failed\":{\"_0\":{\"kind\":\"notBuilt\"}}}'; cat", 8, "--traits OAuth"),
        ("cat >/dev/null", 10, "did not answer in time: the provider may have issued tokens that were lost"),
    ])
    func aSignInThatGoesWrong(_ script: String, _ status: Int32, _ reason: String) throws {
        let home = try SignInHome(nil, worker: .script(script))
        let outcome = try home.run(
            "login", "work", "--issuer", "https://127.0.0.1/o", "--client-id", "fake", "--no-browser",
            "--timeout",
            script.hasPrefix("cat") ? "5" : "60")
        #expect(outcome.status == status, "\(outcome.error)")
        #expect(outcome.output.isEmpty)
        let last = outcome.error.split(separator: "\n").last.map(String.init) ?? ""
        #expect(last.hasPrefix("vaultctl: ") && last.contains(reason), "\(outcome.error)")
    }

    @Test(arguments: [
        ("exit 3", Int32(10)), ("read line; echo nonsense", 10), ("read line; echo '{\"revoked\":{}}'", 10),
        ("cat >/dev/null", 10),
        ("read line; echo '{\"failed\":{\"_0\":{\"kind\":\"notSent\"}}}'", 8),
        ("read line; echo '{\"failed\":{\"_0\":{\"kind\":\"refused\",\"detail\":\"invalid_client\"}}}'", 5),
        ("read line; echo '{\"failed\":{\"_0\":{\"kind\":\"serverError\",\"status\":503}}}'", 8),
        ("read line; echo '{\"failed\":{\"_0\":{\"kind\":\"notBuilt\"}}}'", 8),
    ])
    func aRefreshThatGoesWrong(_ script: String, _ status: Int32) async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let tokens = try await home.expire()
        try home.place(.script(script))
        // Only the worker that hangs uses the whole time.
        let outcome = try home.run("token", "work", "--timeout", script.hasPrefix("cat") ? "2" : "60")
        #expect(outcome.status == status, "\(outcome.error)")
        #expect(outcome.output.isEmpty && outcome.error.split(separator: "\n").count == 1, "\(outcome.error)")
        #expect(outcome.error.hasPrefix("vaultctl: "))
        // The session is still stored with its token.
        let kept = try await home.withManager { try await $0.currentTokens() }
        #expect(kept?.refreshToken == tokens.refreshToken)
    }

    /// Returns a script that answers any sign-in with `token`.
    private static func signIn(_ token: String) -> String {
        let answer =
            #"{"signedIn":{"_0":{"tokens":{"accessToken":"\#(token)","tokenType":"Bearer"},"metadata":"{}","#
            + #""authentication":"client_secret_basic"}}}"#
        return "read line; echo \"$line\" >\"$HOME_OF_TEST/input\"; echo '\(answer)'"
    }

    private func place(_ token: String, in home: SignInHome) throws {
        try home.place(.script("HOME_OF_TEST='\(home.path)'\n" + Self.signIn(token)))
    }

    /// A client's secret is kept for its own provider, and goes to no other.
    @Test func aClientsSecretIsItsOwn() throws {
        let home = try SignInHome(nil)
        let secret = "\(home.path)/secret"
        try "not-a-real-secret\n".write(toFile: secret, atomically: true, encoding: .utf8)
        try #require(chmod(secret, 0o600) == 0)
        try place("fake-1", in: home)
        let first = try home.run(
            "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--no-browser",
            "--client-secret-file", secret, "--scope", "read", "--redirect-port", "8765")
        #expect(first.status == 0, "\(first.error)")
        #expect(try #require(home.contents("input")).contains(#""clientSecret":"not-a-real-secret""#))
        #expect(try home.run("token", "work").output == "fake-1")
        try place("fake-2", in: home)
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        let again = try #require(home.contents("input"))
        #expect(
            again.contains(#""clientSecret":"not-a-real-secret""#) && again.contains(#""redirectPort":8765"#))
        #expect(again.contains(#""scopes":["read"]"#))
        #expect(try home.run("token", "work").output == "fake-2")
        for other in [["--client-id", "another"], ["--issuer", "https://other.example.com"]] {
            try place("fake-3", in: home)
            let outcome = try home.start(["login", "work", "--no-browser"] + other).end()
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(try #require(home.contents("input")).contains("clientSecret") == false)
            #expect(try home.run("token", "work").output == "fake-3")
        }
    }

    @Test func thePolicyIsThatOfTheSession() throws {
        let home = try SignInHome(nil)
        try place("fake", in: home)
        let login = [
            "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--no-browser",
        ]
        let policy = "after-first-unlock-this-device-only"
        #expect(try home.start(login + ["--policy", policy]).end().status == 0)
        // The policy stays, also for another session.
        #expect(try home.run("logout", "work").status == 0)
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        for key in ["profile/work", "auth/session/work"] {
            let info = try home.run("info", key, "--service", "vaultctl.login", "--json")
            #expect(info.output.contains(#""policy":"\#(policy)""#), "\(info.output)\(info.error)")
        }
    }

    /// A session whose profile is gone has no provider to send its token to.
    @Test func aSessionWithoutAProfileIsNotRefreshed() async throws {
        let home = try SignInHome(nil)
        try place("fake-1", in: home)
        #expect(
            try home.run(
                "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--no-browser"
            ).status == 0)
        try await home.withManager { manager in
            try await manager.updateTokens(
                TokenInfo(
                    accessToken: "fake-1", refreshToken: "fake-refresh",
                    accessTokenExpiry: Date(timeIntervalSince1970: 1)))
        }
        #expect(try home.run("delete", "profile/work", "--service", "vaultctl.login").status == 0)
        unlink("\(home.path)/input")
        let orphan = try home.run("token", "work")
        #expect(orphan.status == 3, "\(orphan.error)")
        #expect(home.contents("input") == nil)
    }

    /// No token, code or secret is in an argument, in the environment or in what is said.
    @Test func nothingSecretIsSeen() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.place(
            .script(
                """
                tr '\\0' '\\n' </proc/$$/cmdline >>'\(home.path)/seen'; env >>'\(home.path)/seen'
                tee -a '\(home.path)/input' | "$REAL" 2>>'\(home.path)/said'
                """))
        try home.signIn()
        let first = try #require(try await home.withManager { try await $0.currentTokens() })
        _ = try await home.expire()
        var errors = try home.run("token", "work").error
        let second = try #require(try await home.withManager { try await $0.currentTokens() })
        errors += try home.run("logout", "work").error
        let seen = (home.contents("seen") ?? "") + (home.contents("said") ?? "") + errors
        #expect(seen.contains("vaultctl-oauth"))
        let secrets = [first, second].flatMap {
            [$0.accessToken, $0.refreshToken, $0.idToken].compactMap { $0 }
        }
        #expect(secrets.count == 6)
        for secret in secrets { #expect(!seen.contains(secret)) }
        // The worker got nothing that opens the vault.
        #expect(!seen.contains("VAULTCTL") && !seen.contains("vault.key"))
        #expect(try #require(home.contents("input")).contains(try #require(first.refreshToken)))
    }

    @Test func theWorkerDoesNothingForAnybodyElse() throws {
        let home = try SignInHome(nil)
        let worker = "\(home.path)/bin/vaultctl-oauth"
        let outcome = try RunningCommand(worker, [], home.environment).end()
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.error == "vaultctl-oauth: no request came: run \"vaultctl login\"\n")
        #expect(try RunningCommand(worker, ["help"], home.environment).end().status == 64)
    }
}
#endif
