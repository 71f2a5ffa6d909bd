#if OAuth
import Foundation
import Glibc
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

/// `vaultctl login`, against a real provider.
@Suite(.tags(.provider), .from(.all)) struct LoginTests {
    @Test func aBrowserSignsInAndTheTokenIsPrinted() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        let token = try home.run("token", "work")
        #expect(token.status == 0 && token.error.isEmpty)
        #expect(!token.output.isEmpty && !token.output.contains("\n"))
        #expect(try provider.tell("state", ["token": token.output])["state"].text == "live")
        let json = RunningProvider.JSON(
            value: try JSONSerialization.jsonObject(
                with: Data(try home.run("token", "work", "--json").output.utf8)))
        #expect(json["profile"].text == "work" && json["accessToken"].text == token.output)
        #expect(json["tokenType"].text == "Bearer" && json["scope"].text.contains("read"))
        #expect(json["expires"].text.hasSuffix("Z"))
        #expect(try home.run("profiles").output == "work\tsigned-in\t\(provider.issuer)\n")
        #expect(try provider.tell("sessions", ["user": "alice"])["families_ever"].number == 1)
        // The profile keeps the options.
        #expect(try home.run("login", "work").status == 0)
        #expect(try provider.tell("sessions", ["user": "alice"])["families_ever"].number == 2)
        #expect(try home.run("token", "work").output != token.output)
        // The previous session has ended at the provider.
        #expect(try provider.tell("sessions", ["user": "alice"])["refresh_tokens"].number == 1)
        #expect(try provider.tell("state", ["token": token.output])["state"].text != "live")
        // The user's own items contain nothing of the session.
        #expect(try home.run("list").output.isEmpty)
        #expect(
            try home.run("list", "--service", "vaultctl.login").output
                == "auth/session/work\nauth/signed-in/work\nprofile/work\n")
    }

    @Test func aDeviceSignsIn() throws {
        let provider = try RunningProvider()
        try provider.tell("interval", ["seconds": 1])
        let home = try SignInHome(provider)
        let login = try home.start([
            "login", "tv", "--issuer", provider.issuer, "--client-id", provider.clientID("device"), "--scope",
            "read",
            "--device",
        ])
        let address = try login.expect(after: "to sign in, open ", until: " on any device")
        let code = try login.expect(after: "enter the code ", until: "\n")
        #expect(address.hasPrefix(provider.origin))
        try provider.tell("approve-device", ["user_code": code])
        let outcome = try login.end()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output.isEmpty)
        // A device sign-in has no redirect port to check.
        #expect(outcome.error.contains("check --client-id and --scope\n"), "\(outcome.error)")
        // The name alone signs in on a device again, and a sign-in with all options uses a browser.
        let again = try home.start(["login", "tv"], without: "BROWSER")
        try provider.tell(
            "approve-device", ["user_code": try again.expect(after: "enter the code ", until: "\n")])
        #expect(try again.end().status == 0)
        let dark = try home.start(["login", "tv", "--redirect-port", "1024"], without: "BROWSER").end()
        #expect(dark.status == 8 && dark.error.contains("with \"vaultctl login tv --device\""), "\(dark)")
        let token = try home.run("token", "tv").output
        #expect(try provider.tell("state", ["token": token])["state"].text == "live")
    }

    /// What a profile keeps is for the client and the provider that it was given for.
    @Test func nothingOfAnotherClientIsKept() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let first = [
            "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--scope", "read",
        ]
        #expect(try home.start(first + ["--no-browser", "--redirect-port", "1024"]).end().status == 0)
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        #expect(try home.run("login", "work", "--client-id", "other", "--no-browser").status == 0)
        let asked = home.asked("browser")
        #expect(asked.map { $0.contains(#""read""#) } == [true, true, false])
        #expect(asked.map { $0.contains("1024") } == [true, true, false])
        #expect(try home.start(first + ["--device"]).end().status == 0)
        #expect(try home.run("login", "work").status == 0)
        #expect(home.asked("device").count == 2)
        // A sign-in with all options also decides the sign-in method.
        #expect(try home.start(first + ["--no-browser"]).end().status == 0)
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        #expect(home.asked("device").count == 2)
    }

    /// The session ends with its first token.
    @Test func thatNothingRenewsTheTokenIsSaid() throws {
        let home = try SignInHome(nil)
        let tokens = #"{"accessToken":"fake-1","tokenType":"Bearer"}"#
        try SaidWorker(
            signIn:
                #"echo '{"signedIn":{"_0":{"tokens":\#(tokens),"metadata":"{}","authentication":"none"}}}'"#
        ).place(in: home)
        let outcome = try home.signIn(at: "https://id.example.com").end()
        #expect(outcome.status == 0 && outcome.error.contains("offline_access"), "\(outcome.error)")
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().error.contains("offline_access") == false)
    }

    /// OpenID Connect says nothing of devices, and not every provider gives an ID token to one.
    @Test func aDeviceNeedsNoIDToken() throws {
        let provider = try RunningProvider()
        try provider.tell("interval", ["seconds": 1])
        let home = try SignInHome(provider)
        let login = try home.start([
            "login", "tv", "--issuer", provider.issuer, "--client-id", provider.clientID("device"), "--scope",
            "openid", "--scope", "read", "--device",
        ])
        let code = try login.expect(after: "enter the code ", until: "\n")
        try provider.tell("approve-device", ["user_code": code])
        let outcome = try login.end()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("issued no ID token"))
        #expect(try home.run("token", "tv").status == 0)
    }

    /// The session before is ended at the provider as far as that can be; that it cannot is said, and no more.
    @Test func theSessionBeforeIsEnded() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        #expect(try home.run("login", "work", "--no-revoke").status == 0)
        let families = { try provider.tell("sessions", ["user": "alice"])["refresh_tokens"].number }
        #expect(try families() == 2)
        try provider.tell("fail", ["path": "/o/revoke_token/", "how": "500", "times": 9])
        // The profile keeps the option, and the opposite option removes it.
        #expect(try home.run("login", "work").status == 0)
        #expect(try families() == 3)
        let untold = try home.run("login", "work", "--revoke")
        #expect(untold.status == 0)
        #expect(
            untold.error.contains("of the previous sign-in may be valid until they expire"), "\(untold.error)"
        )
        #expect(try families() == 4)
        try provider.tell("reset")
        let told = try home.run("login", "work")
        #expect(told.status == 0 && !told.error.contains("previous sign-in"), "\(told.error)")
        #expect(try families() == 4)
    }

    /// At another provider: that one is not told, and the old token goes nowhere.
    @Test func theSessionBeforeAtAnotherProviderIsToldOf() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id-a.example.com").end().status == 0)
        let second = try home.signIn(at: "https://id-b.example.com").end()
        #expect(second.status == 0 && second.error.contains("it may stay valid there"), "\(second.error)")
        #expect(home.asked("revoke").isEmpty)
        try SaidWorker(signIn: SaidWorker.signedIn("fake-2")).place(in: home)
        let third = try home.signIn(at: "https://id-b.example.com").end()
        #expect(third.status == 0, "\(third.error)")
        let revoked = home.asked("revoke")
        #expect(revoked.count == 1 && revoked.first?.contains("id-b.example.com") == true)
        #expect(revoked.first?.contains("refresh-of-fake-1") == true)
    }

    /// A sign-in that finds the vault locked when it comes back.
    private func lockedMeanwhile(_ more: String...) throws -> (SignInHome, RunningCommand) {
        let home = try SignInHome(nil)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let gate = try Gate(holding: "\(home.path)/gate")
        let open = #"echo '{"open":{"address":"https://127.0.0.1/"}}'; flock -s '\#(gate.path)' true; "#
        try SaidWorker(signIn: open + SaidWorker.signedIn("fake-1")).place(in: home)
        let login = try home.start(
            [
                "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake",
                "--no-browser",
            ] + more)
        _ = try login.expect(after: "open this address", until: "\n")
        #expect(try home.run("lock").status == 0)
        gate.open()
        return (home, login)
    }

    /// Tokens that came and cannot be kept are revoked.
    @Test func whatCannotBeStoredIsRevoked() throws {
        let (home, login) = try lockedMeanwhile("--timeout", "20")
        defer { _ = try? home.run("agent", "--stop") }
        let outcome = try login.end()
        #expect(outcome.status == 4, "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "signed in, but the tokens could not be stored and were revoked, so sign in again: locked"
            ), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1)
        #expect(home.asked("revoke").first?.contains("refresh-of-fake-1") == true)
    }

    /// The user was away at the provider's page, and now has a moment to unlock the vault.
    @Test func whatWasGivenIsStoredOnceTheVaultIsUnlocked() throws {
        let (home, login) = try lockedMeanwhile()
        defer { _ = try? home.run("agent", "--stop") }
        let note = try login.expect(after: "signed in, but the tokens cannot be stored yet", until: "\n")
        #expect(note.contains("locked") && note.contains("vaultctl unlock"), "\(note)")
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try login.end().status == 0)
        #expect(home.asked("revoke").isEmpty)
        #expect(try home.run("token", "work").output == "fake-1")
    }

    @Test func aSignalEndsTheWaitingForTheVault() throws {
        let (home, login) = try lockedMeanwhile()
        defer { _ = try? home.run("agent", "--stop") }
        _ = try login.expect(after: "signed in, but the tokens cannot be stored yet", until: "\n")
        login.send(SIGTERM)
        let outcome = try login.end()
        #expect(outcome.status == 143, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("the issued tokens were revoked: sign in again"), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1)
    }

    @Test func mistakesComeBeforeTheBrowser() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let client = ["--issuer", "https://id.example.com", "--client-id", "fake"]
        for (arguments, status, reason) in [
            (["work"], 3, "no such profile"), (["work", "--client-id", "fake"], 64, "--issuer"),
            (["work", "--redirect-port", "65536"] + client, 64, "--redirect-port"),
            (["work", "--redirect-uri", "https://app.example.com/"] + client, 64, "127.0.0.1, [::1]"),
            (
                ["work", "--redirect-uri", "http://localhost:80/", "--redirect-port", "81"] + client, 64,
                "leave --redirect-port out"
            ),
            (["work", "--redirect-uri", "http://localhost/", "--device"] + client, 64, "no port"),
            (["work", "--allow-origin", "https://a.example/b"] + client, 64, "as in https://"),
            (["work", "--allow-origin", "http://a.example"] + client, 64, "as in https://"),
            (["work", "--scope", "openid read"] + client, 64, "repeat the option"),
            (["work", "--policy", "when-unlokced"] + client, 64, "did you mean when-unlocked?"),
            (["work", "--client-id", "fake", "--issuer", "id.example.com"], 64, "https://"),
            (["work", "--client-id", "fake", "--issuer", "http://id.example.com"], 64, "https address"),
            (["work", "--client-id", "fake", "--issuer", "https://id.example.com?a"], 64, "without a query"),
            (
                [
                    "work", "--client-id", "fake", "--issuer",
                    "https://id.example.com/.well-known/openid-configuration",
                ], 64, "leave /.well-known/"
            ),
            (["work"] + client, 8, "--no-browser"),
        ] as [([String], Int32, String)] {
            let outcome = try home.start(["login"] + arguments, without: "BROWSER").end()
            #expect(outcome.status == status, "\(arguments): \(outcome.error)")
            #expect(outcome.error.contains(reason), "\(arguments): \(outcome.error)")
            #expect(outcome.error.split(separator: "\n").count == 1)
        }
    }

    @Test func whatAnIssuerWasComparedWithIsSaid() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let slash = try home.run(
            "login", "work", "--issuer", provider.issuer + "/", "--client-id", provider.clientID("browser"))
        #expect(slash.status == 8 && slash.error.contains("without the slash"), "\(slash.error)")
        let other = try home.run(
            "login", "work", "--issuer", provider.issuer.replacing("127.0.0.1", with: "localhost"),
            "--client-id",
            provider.clientID("browser"))
        #expect(other.status == 8 && other.error.contains("exactly as"), "\(other.error)")
    }

    @Test func aCertificateThatIsNotTrustedIsTold() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let port = try provider.tell("encrypt", ["name": "127.0.0.1"])["port"].number
        let login = try home.run(
            "login", "work", "--issuer", "https://127.0.0.1:\(port)/o", "--client-id", "fake")
        #expect(login.status == 8, "\(login.error)")
        #expect(
            login.error.contains("certificate is not trusted")
                && login.error.contains("update-ca-certificates"), "\(login.error)")
        // A provider without a listener gets its own message.
        let absent = try UnansweredPort()
        let refused = try home.run(
            "login", "work", "--issuer", "https://127.0.0.1:\(absent.number)/o", "--client-id", "fake")
        #expect(refused.status == 8 && refused.error.contains("cannot be reached"), "\(refused.error)")
    }

    /// Where the page shows a mistake, the browser does not come back. The program says how long it waits,
    /// and for what.
    @Test func theWaitingIsSaid() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let login = try home.start([
            "login", "work", "--issuer", provider.issuer, "--client-id", "fake-unknown", "--no-browser",
        ])
        let waiting = try login.expect(after: "waiting for the sign-in, ", until: "\n")
        #expect(waiting.hasPrefix("for 5 minutes at most") && waiting.contains("--client-id"))
        login.send(SIGINT)
        #expect(try login.end().status == 130)
    }

    @Test func aPersonRefusesTheDevice() throws {
        let provider = try RunningProvider()
        try provider.tell("interval", ["seconds": 1])
        let home = try SignInHome(provider)
        let login = try home.start([
            "login", "tv", "--issuer", provider.issuer, "--client-id", provider.clientID("device"),
            "--device",
        ])
        let code = try login.expect(after: "enter the code ", until: "\n")
        try provider.tell("deny-device", ["user_code": code])
        let outcome = try login.end()
        #expect(outcome.status == 5)
        let reason = "the sign-in was refused on the provider's page: sign in again"
        #expect(outcome.error.hasSuffix("vaultctl: \(reason)\n"))
        #expect(try home.run("profiles").output.isEmpty)
    }

    /// The user has said yes. A message that the user did not sign in would be untrue, and the provider may
    /// have a session.
    @Test(.serialized, arguments: ["503-after", "drop-after"])
    func anExchangeWhoseAnswerIsLostIsTold(_ how: String) throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try provider.tell("fail", ["path": "/o/token/", "how": how, "times": 1])
        let lost = try home.run(
            "login", "work", "--issuer", provider.issuer, "--client-id", provider.clientID("browser"),
            "--scope", "read")
        #expect(lost.status == 8, "\(lost.error)")
        #expect(lost.error.contains("may have a session whose tokens were lost"), "\(lost.error)")
        #expect(lost.error.contains("end such a session at the provider's own page"), "\(lost.error)")
        #expect(try home.run("profiles").output.isEmpty)
    }

    @Test func anExchangeWithoutAnAnswerIsTold() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try provider.tell("fail", ["path": "/o/token/", "how": "hang-after", "times": 1])
        let late = try home.run(
            "login", "work", "--issuer", provider.issuer, "--client-id", provider.clientID("browser"),
            "--scope", "read", "--timeout", "30")
        #expect(late.status == 10, "\(late.error)")
        #expect(
            late.error.contains("did not answer in time")
                && !late.error.contains("the sign-in was not completed"),
            "\(late.error)")
        #expect(late.error.contains("may have a session whose tokens were lost"), "\(late.error)")
        #expect(try home.run("profiles").output.isEmpty)
    }

    @Test func aDevicesGrantWithoutAnAnswerIsTold() throws {
        let provider = try RunningProvider()
        try provider.tell("interval", ["seconds": 1])
        let home = try SignInHome(provider)
        let login = try home.start([
            "login", "tv", "--issuer", provider.issuer, "--client-id", provider.clientID("device"), "--scope",
            "read", "--device", "--timeout", "30",
        ])
        let code = try login.expect(after: "enter the code ", until: "\n")
        try provider.tell("fail", ["path": "/o/token/", "how": "hang-after", "times": 9])
        try provider.tell("approve-device", ["user_code": code])
        let late = try login.end()
        #expect(late.status == 10, "\(late.error)")
        #expect(late.error.contains("may have a session whose tokens were lost"), "\(late.error)")
        #expect(!late.error.contains("the sign-in was not completed"), "\(late.error)")
    }

    @Test func whatCannotSucceedSaysWhatElseDoes() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        #expect(try home.run("login", "work").status == 3)
        #expect(try home.run("login", "work", "--issuer", provider.issuer).status == 64)
        let client = ["--issuer", provider.issuer, "--client-id", provider.clientID("browser")]
        let dark = try home.start(["login", "work"] + client, without: "BROWSER").end()
        #expect(dark.status == 8 && dark.error.contains("--device") && dark.error.contains("--no-browser"))
        let offline = try UnansweredPort()
        let away = try home.run(
            "login", "work", "--issuer", "http://127.0.0.1:\(offline.number)/o", "--client-id", "fake")
        #expect(away.status == 8 && away.error.contains("cannot be reached"))
        let taken = try home.start(["login", "work", "--redirect-port", "\(offline.number)"] + client).end()
        #expect(taken.status == 8 && taken.error.contains("--device"))
        let late = try home.start(["login", "work", "--no-browser", "--timeout", "12"] + client).end()
        #expect(
            late.status == 10 && late.error.contains("the sign-in was not completed in time"), "\(late.error)"
        )
        #expect(late.error.contains("check --client-id, --redirect-uri and --scope first"), "\(late.error)")
        // No sign-in address was shown.
        try provider.tell(
            "fail", ["path": "/o/.well-known/openid-configuration", "how": "hang", "times": 9])
        let silent = try home.start(["login", "work", "--no-browser", "--timeout", "8"] + client).end()
        #expect(silent.status == 10 && silent.error.contains("did not answer in time"), "\(silent.error)")
        #expect(silent.error.contains("check --issuer"), "\(silent.error)")
        #expect(try home.run("profiles").output.isEmpty)
    }

    /// Which limit ends a request first, its own or that of the whole sign-in, depends on the load of the machine.
    @Test(arguments: ["noAnswer", "timedOut"])
    func aSilentProviderIsOneWhateverLimitEndsFirst(_ kind: String) throws {
        let home = try SignInHome(nil)
        try SaidWorker(signIn: #"echo '{"failed":{"_0":{"kind":"\#(kind)"}}}'"#).place(in: home)
        let silent = try home.signIn(at: "https://id.example.com").end()
        #expect(silent.status == 10 && silent.error.contains("check --issuer"), "\(silent.error)")
    }

    /// The program reports the browser's own failure, and goes on waiting: the user can open the address by
    /// hand.
    @Test func aBrowserThatFailsIsTold() async throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.script("browser", "exit 3")
        let login = try home.start([
            "login", "work", "--issuer", provider.issuer, "--client-id", provider.clientID("browser"),
            "--scope",
            "read",
        ])
        let address = try login.expect(after: "If nothing happens, visit: ", until: "\n")
        _ = try login.expect(after: "the browser did not start", until: "\n")
        _ = try await provider.have("browse", ["url": address])
        let ended = try login.end()
        #expect(ended.status == 0 && !ended.error.contains("\n\n"), "\(ended.error)")
    }

    /// Other users can read a program's arguments: the state of the sign-in is not among them.
    @Test func aBrowserGetsAPageThatTellsNothing() throws {
        let home = try SignInHome(nil)
        try home.script("browser", "printf '%s' \"$1\" >'\(home.path)/opened'")
        let open =
            #"echo '{"open":{"address":"https://id.example.com/?state=s","page":"http://127.0.0.1:1/start/x"}}'; "#
        let wait = "until [[ -s '\(home.path)/opened' ]]; do :; done; "
        try SaidWorker(signIn: open + wait + SaidWorker.signedIn("fake-1")).place(in: home)
        let login = try home.start([
            "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake",
        ]).end()
        #expect(
            login.status == 0 && login.error.contains("https://id.example.com/?state=s"), "\(login.error)")
        #expect(home.contents("opened") == "http://127.0.0.1:1/start/x")
    }

    /// Another client under the same name: nothing of the old one goes to the new one.
    @Test func anotherProviderBeginsAnew() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let secret = "\(home.path)/secret"
        try "not-a-real-secret\n".write(toFile: secret, atomically: true, encoding: .utf8)
        try #require(chmod(secret, 0o600) == 0)
        try home.signIn()
        let refused = try home.run(
            "login", "work", "--client-id", "fake-other", "--client-secret-file", secret, "--timeout", "5")
        #expect(refused.status != 0)
        // The previous session continues.
        #expect(try home.run("token", "work").status == 0)
    }

    /// Ctrl-C ends `vaultctl-oauth` too, and so does the sudden end of `vaultctl`.
    @Test(arguments: [SIGINT, SIGTERM, SIGKILL])
    func nothingIsLeftBehind(_ signal: Int32) throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let pipe = "\(home.path)/alive"
        try #require(mkfifo(pipe, 0o600) == 0)
        try home.place(.script("exec \"$REAL\" 9>'\(pipe)'"))
        let login = try home.start([
            "login", "work", "--issuer", provider.issuer, "--client-id", provider.clientID("browser"),
            "--no-browser",
        ])
        // The pipe has a writer while the worker is alive.
        let reader = open(pipe, O_RDONLY | O_CLOEXEC)
        try #require(reader >= 0)
        defer { close(reader) }
        _ = try login.expect(after: "open this address in a browser: ", until: "\n")
        login.send(signal)
        #expect(try login.end().status == 128 + signal)
        var byte: UInt8 = 0
        #expect(read(reader, &byte, 1) == 0)
    }
}
#endif
