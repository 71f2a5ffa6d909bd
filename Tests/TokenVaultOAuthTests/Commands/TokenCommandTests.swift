#if OAuth
import Foundation
import Glibc
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

/// `vaultctl token` and `vaultctl logout`, against a real provider.
@Suite(.tags(.provider), .from(.all)) struct TokenCommandTests {
    /// While the token is good, the command starts no program, and the provider's program need not be there.
    @Test func aTokenThatIsGoodStartsNothing() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let token = try home.run("token", "work").output
        try home.place(.script("touch '\(home.path)/started'; exit 1"))
        #expect(try home.run("token", "work").output == token)
        #expect(try home.run("token", "work", "--json").status == 0)
        #expect(home.contents("started") == nil)
        try home.place(.missing)
        #expect(try home.run("token", "work").output == token)
        // A token that is due but still valid is printed.
        try await home.age()
        let due = try home.run("token", "work", "--min-valid", "1h")
        #expect(due.output == token && due.status == 0, "\(due.error)")
        #expect(due.error.contains("install vaultctl-oauth"), "\(due.error)")
        // The token has expired.
        _ = try await home.expire()
        let over = try home.run("token", "work")
        #expect(over.status == 8 && over.output.isEmpty && over.error.contains("install vaultctl-oauth"))
        #expect(try provider.requests("refresh_token") == 0)
    }

    /// The ID token names the signed-in user. The command does not print an ID token that is missing or over.
    @Test(
        arguments: [(nil, 3, "no ID token"), (4_000_000_000, 0, ""), (1_000_000_000, 3, "has expired")]
            as [(Int?, Int32, String)])
    func theIDTokenIsPrinted(_ expiry: Int?, _ status: Int32, _ reason: String) throws {
        let home = try SignInHome(nil)
        let claims = expiry.map {
            Data(#"{"iss":"a","sub":"b","aud":"c","iat":1,"exp":\#($0)}"#.utf8).base64EncodedString()
        }
        let token = claims.map { "eyJhbGciOiJub25lIn0.\($0.replacing("=", with: "")).fake" }
        try SaidWorker(signIn: SaidWorker.signedIn("fake-1", token.map { #","idToken":"\#($0)""# } ?? ""))
            .place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        let printed = try home.run("token", "work", "--id")
        #expect(printed.status == status && (reason.isEmpty || printed.error.contains(reason)), "\(printed)")
        #expect(printed.output == (status == 0 ? token : ""))
        let json = try home.run("token", "work", "--id", "--json")
        #expect(json.status == status)
        #expect(json.output.contains("\"idToken\":\"\(token ?? "")\"") == (status == 0))
        #expect(try home.run("token", "work", "--json").output.contains("idToken") == false)
    }

    @Test func aTokenThatIsOverIsRenewedOnce() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let old = try await home.expire()
        let token = try home.run("token", "work")
        #expect(token.status == 0 && token.error.isEmpty, "\(token.error)")
        #expect(token.output != old.accessToken)
        #expect(try home.run("token", "work").output == token.output)
        #expect(try provider.requests("refresh_token") == 1)
        #expect(try provider.tell("state", ["token": token.output])["state"].text == "live")
        // The session keeps its user and the ID token.
        let (user, tokens) = try await home.withManager { manager in
            (try await manager.currentUser(), try await manager.currentTokens())
        }
        #expect(user?.email == "alice@example.com")
        #expect(tokens?.refreshToken != old.refreshToken && tokens?.idToken != nil)
    }

    @Test func twentyProcessesRefreshOnce() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let old = try await home.expire()
        let commands = try (0..<20).map { _ in try home.start(["token", "work"]) }
        let outcomes = try commands.map { try $0.end() }
        #expect(outcomes.allSatisfy { $0.status == 0 }, "\(outcomes.map(\.error))")
        let tokens = Set(outcomes.map(\.output))
        #expect(tokens.count == 1 && !tokens.contains(old.accessToken))
        #expect(try provider.requests("refresh_token") == 1)
    }

    @Test func nobodyIsSignedIn() throws {
        let home = try SignInHome(nil)
        for command in ["token", "logout"] {
            let outcome = try home.run(command, "work")
            #expect(
                outcome.status == 3 && outcome.error.contains("vaultctl login PROFILE"), "\(outcome.error)")
        }
        #expect(try home.run("token", "").status == 64)
        #expect(try home.run("token", "work", "--min-valid", "soon").status == 64)
        #expect(try home.run("token", "work", "--backend", "memory").status == 64)
    }

    @Test func aSessionThatTheProviderEndedIsOver() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let old = try await home.expire()
        try provider.tell("revoke", ["token": old.accessToken])
        let outcome = try home.run("token", "work")
        #expect(outcome.status == 3 && outcome.output.isEmpty)
        #expect(
            outcome.error
                == "vaultctl: the provider has ended the session: run \"vaultctl login work\"\n"
        )
        #expect(try home.run("token", "work").status == 3)
        #expect(try home.run("profiles").output == "work\tsigned-out\t\(provider.issuer)\n")
        #expect(try home.run("login", "work").status == 0)
        #expect(try home.run("token", "work").status == 0)
    }

    /// The profile that there is is named; what was mistyped is not repeated.
    @Test func aMistypedProfileIsNotSignedOut() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        #expect(try home.run("logout", "work").status == 0)
        for command in ["token", "logout"] {
            let mistyped = try home.run(command, "wrok")
            #expect(mistyped.status == 3 && mistyped.error.contains("no such profile"), "\(mistyped.error)")
            #expect(!mistyped.error.contains("wrok"))
            let known = try home.run(command, "work")
            #expect(
                known.status == 3
                    && known.error
                        == "vaultctl: not signed in to \"work\": run \"vaultctl login work\"\n",
                "\(known.error)")
        }
    }

    @Test func aTokenIsRenewedOnDemand() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let first = try home.run("token", "work").output
        let renewed = try home.run("token", "work", "--renew")
        #expect(renewed.status == 0 && !renewed.output.isEmpty && renewed.output != first, "\(renewed.error)")
        #expect(try provider.tell("state", ["token": renewed.output])["state"].text == "live")
        #expect(try provider.requests("refresh_token") == 1)
        #expect(try home.run("token", "work").output == renewed.output)
        // With --renew, a token that is still valid is not enough.
        try home.place(.missing)
        let failed = try home.run("token", "work", "--renew")
        #expect(failed.status == 8 && failed.output.isEmpty, "\(failed.error)")
    }

    @Test func aTokenThatEndsTooSoonIsToldOf() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let enough = try home.run("token", "work", "--min-valid", "30m")
        #expect(enough.status == 0 && enough.error.isEmpty)
        let soon = try home.run("token", "work", "--min-valid", "2h")
        #expect(soon.status == 0 && !soon.output.isEmpty)
        #expect(
            soon.error.hasPrefix("vaultctl: note: the token is valid for 3")
                && soon.error.contains("less than --min-valid (7200 seconds)")
                && soon.error.contains("--renew asks it"), "\(soon.error)")
    }

    /// The command revokes what a refresh brings for a session that was ended meanwhile: no session would
    /// hold it.
    @Test func aRefreshThatLosesIsRevoked() async throws {
        let home = try SignInHome(nil)
        let gate = try Gate(holding: "\(home.path)/gate")
        let pipe = try Gate(watching: "\(home.path)/asked-now")
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired),
            refresh: "echo >'\(pipe.path)'; flock -s '\(gate.path)' true; " + SaidWorker.refreshed("fake-2")
        ).place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        let token = try home.start(["token", "work"])
        pipe.wait()
        let logout = try home.run("logout", "work")
        #expect(logout.status == 0 && logout.error.contains("revokes the new tokens"), "\(logout.error)")
        gate.open()
        let outcome = try token.end()
        #expect(outcome.status == 9 && outcome.output.isEmpty, "\(outcome.error)")
        let revoked = home.asked("revoke")
        #expect(revoked.count == 2)
        #expect(revoked.first?.contains("refresh-of-fake-1") == true)
        #expect(revoked.last?.contains("refresh-of-fake-2") == true)
    }

    /// A profile of a newer program hides no other one.
    @Test func aProfileOfANewerProgramIsToldOf() async throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        for name in ["other", "work"] {
            let login = ["login", name, "--issuer", "https://id.example.com", "--client-id", "fake"]
            #expect(try home.start(login + ["--no-browser"]).end().status == 0)
        }
        try await home.withStorage { storage in
            try await storage.store(Secret(utf8: #"{"version":2}"#), for: "profile/other")
        }
        let profiles = try home.run("profiles")
        #expect(profiles.status == 8 && profiles.output == "work\tsigned-in\thttps://id.example.com\n")
        #expect(profiles.error.contains("note: other is not a profile that this program knows"))
        let json = try home.run("profiles", "--json")
        #expect(json.status == 8 && json.output.contains(#""profile":"work""#))
        #expect(try home.run("login", "other", "--no-browser").status == 8)
        let told = try home.run("logout", "other")
        #expect(told.status == 8 && told.error.contains("signed out here"), "\(told.error)")
        let anew = ["login", "other", "--issuer", "https://id.example.com", "--client-id", "fake"]
        #expect(try home.start(anew + ["--no-browser"]).end().status == 0)
        #expect(try home.run("profiles").status == 0)
    }

    /// Through the agent and past it, at once: one lease keeps them apart.
    @Test func theAgentAndTheFileAreOneVault() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        defer { _ = try? home.run("agent", "--stop") }
        let old = try await home.expire()
        let commands = try (0..<8).map { number in
            number % 2 == 0
                ? try home.start(["token", "work"], without: "VAULTCTL_KEY_FILE")
                : try home.start(["token", "work", "--no-agent"])
        }
        let outcomes = try commands.map { try $0.end() }
        #expect(outcomes.allSatisfy { $0.status == 0 }, "\(outcomes.map(\.error))")
        let tokens = Set(outcomes.map(\.output))
        #expect(tokens.count == 1 && !tokens.contains(old.accessToken))
        #expect(try provider.requests("refresh_token") == 1)
    }

    /// Where nothing can be stored, nothing is sent: the old token stays good.
    @Test func aVaultThatTakesNothingIsNotRenewed() async throws {
        let home = try SignInHome(nil)
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired),
            refresh: SaidWorker.refreshed("fake-2")
        ).place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        let mistake = try home.run("token", "work", "--read-only", "--renew")
        #expect(mistake.status == 64 && mistake.error.contains("--read-only"), "\(mistake.error)")
        let readOnly = try home.run("token", "work", "--read-only")
        #expect(readOnly.status == 1 && readOnly.error.contains("leave --read-only out"), "\(readOnly.error)")
        // The vault cannot grow: SIGXFSZ is ignored, so that writing fails.
        let full = try RunningCommand(
            "/bin/bash",
            ["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" token work", home.program], home.environment
        ).end()
        #expect(full.status == 1 && full.output.isEmpty, "\(full.status) \(full.error)")
        #expect(home.asked("refresh").isEmpty)
        #expect(try home.run("token", "work").output == "fake-2")
    }

    @Test func lockedIsNotSignedOut() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let outcome = try home.start(["token", "work", "--no-input"], without: "VAULTCTL_KEY_FILE").end()
        #expect(outcome.status == 4 && outcome.output.isEmpty)
        #expect(try home.start(["logout", "work"], without: "VAULTCTL_KEY_FILE").end().status == 4)
        #expect(try home.run("token", "work").status == 0)
    }

    @Test func loggingOutRevokes() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let token = try home.run("token", "work").output
        let outcome = try home.run("logout", "work")
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        #expect(try provider.tell("state", ["token": token])["state"].text != "live")
        #expect(try provider.tell("sessions", ["user": "alice"])["refresh_tokens"].number == 0)
        #expect(try home.run("token", "work").status == 3)
        #expect(try home.run("logout", "work").status == 3)
        #expect(try home.run("profiles").output == "work\tsigned-out\t\(provider.issuer)\n")
        #expect(try home.run("logout", "work", "--forget-profile").status == 0)
        #expect(try home.run("profiles").output.isEmpty)
        #expect(try home.run("login", "work").status == 3)
    }

    /// The session is gone from here in any case, and that the provider does not know is said.
    @Test func loggingOutWithoutTheProvider() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        try provider.tell("fail", ["path": "/o/revoke_token/", "how": "500", "times": 9])
        let outcome = try home.run("logout", "work")
        #expect(outcome.status == 8)
        #expect(outcome.error.contains("signed out here, but the tokens were not revoked"))
        #expect(try home.run("token", "work").status == 3)
        try provider.tell("reset")
        try home.signIn()
        try home.place(.missing)
        let missing = try home.run("logout", "work", "--forget-profile")
        #expect(
            missing.status == 8 && missing.error.contains("the program that signs in was not found"),
            "\(missing.error)")
        #expect(try home.run("token", "work").status == 3)
        #expect(try home.run("profiles").output.isEmpty)
    }

    /// Sessions are items as well. While the vault is locked, the command cannot tell which items are
    /// sessions.
    @Test func howManyProfilesThereAreIsNotGuessed() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        defer { _ = try? home.run("agent", "--stop") }
        #expect(try home.run("lock").status == 0)
        let profiles = try home.run("profiles")
        #expect(profiles.status == 4 && profiles.output.isEmpty)
        #expect(
            profiles.error.hasPrefix("vaultctl: some items are not shown while locked"),
            "\(profiles.error)")
    }

    /// The provider may have replaced the old token by a new one that was lost. The command says so when it
    /// prints the old token.
    @Test func aTokenThatMayBeReplacedIsPrintedWithThat() async throws {
        let home = try SignInHome(nil)
        try SaidWorker(refresh: "exit 1").place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        let note = "a renewal was started and its outcome is unknown"
        // The token has no known expiry, so the provider is not asked.
        #expect(try !home.run("token", "work").error.contains(note))
        #expect(try home.run("token", "work", "--renew", "--timeout", "20").status == 10)
        let later = try home.run("token", "work")
        #expect(later.status == 0 && later.output == "fake-1" && later.error.contains(note), "\(later.error)")
        // The token is due, but valid for some time.
        try await home.age()
        let due = try home.run("token", "work", "--min-valid", "1h", "--timeout", "20")
        #expect(due.status == 0 && due.output == "fake-1" && due.error.contains(note), "\(due.error)")
        #expect(home.asked("refresh").count >= 2)
        try SaidWorker(refresh: SaidWorker.refreshed("fake-2")).place(in: home)
        let renewed = try home.run("token", "work", "--renew")
        #expect(renewed.status == 0 && renewed.output == "fake-2", "\(renewed.error)")
        #expect(try !home.run("token", "work").error.contains(note))
    }

    /// Of a session the way to another policy is another sign-in.
    @Test func whatAKeyFileDoesNotOpenSaysWhatWould() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        let key = "\(home.path)/other.key"
        #expect(try home.run("slot", "add", "key-file", key, "--scope", "after-first-unlock").status == 0)
        let dark = try home.start(["token", "work", "--key-file", key], without: "VAULTCTL_KEY_FILE").end()
        #expect(dark.status == 5, "\(dark.error)")
        let advice = "\"vaultctl login work\" with --policy after-first-unlock-this-device-only"
        #expect(dark.error.contains(advice), "\(dark.error)")
        let login = ["login", "work", "--no-browser", "--policy", "after-first-unlock-this-device-only"]
        #expect(try home.start(login).end().status == 0)
        let token = try home.start(["token", "work", "--key-file", key], without: "VAULTCTL_KEY_FILE").end()
        #expect(token.status == 0 && token.output == "fake-1", "\(token.error)")
    }
}
#endif
