#if OAuth
import Foundation
import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// A worker that reports a request to sign a user in, and a request to revoke the tokens of that sign-in. It
/// answers each when the test allows it.
private struct HeldWorker {
    let isAsked, answers, isRevoking, revokes: Gate

    init(_ token: String, in home: SignInHome) throws {
        isAsked = try Gate(watching: "\(home.path)/asked-for")
        answers = try Gate(holding: "\(home.path)/answers")
        isRevoking = try Gate(watching: "\(home.path)/revoking")
        revokes = try Gate(holding: "\(home.path)/revokes")
        func held(_ told: Gate, _ gate: Gate) -> String {
            "exec 9>'\(told.path)'; echo >&9; flock -s '\(gate.path)' true; "
        }
        try SaidWorker(
            signIn: held(isAsked, answers) + SaidWorker.signedIn(token),
            revoke: held(isRevoking, revokes) + #"echo '{"revoked":{}}'"#
        ).place(in: home)
    }
}

/// `vaultctl login`, and `vaultctl token`, ended by a signal while they have what the provider gave: it is given back first.
@Suite(.tags(.provider), .from(.all)) struct EndedSignInTests {
    /// The attempt to store them hangs.
    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func whatIsBeingStoredIsRevoked(_ signal: Int32) throws {
        let home = try SignInHome(nil)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        defer {
            _ = try? RunningCommand(
                "/bin/bash", ["-c", LockedMeanwhileTests.signalling("KILL", home)], home.environment
            ).end()
        }
        let said = try Gate(watching: "\(home.path)/said")
        try SaidWorker(
            signIn: "exec 9>'\(said.path)'; " + LockedMeanwhileTests.signalling("STOP", home)
                + SaidWorker.signedIn("fake-1") + "; sleep 1000"
        ).place(in: home)
        let login = try home.start(
            ["login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--no-browser"],
            without: "VAULTCTL_KEY_FILE")
        // The signal comes once the answer has arrived.
        said.wait()
        login.send(signal)
        let outcome = try login.end()
        #expect(outcome.status == 128 + signal, "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains("the issued tokens were revoked"), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1 && home.asked("revoke")[0].contains("refresh-of-fake-1"))
    }

    /// The shell tells its jobs that the terminal is gone, and so does the kernel. The second signal does not
    /// ask for an end at once.
    @Test func aTerminalThatGoesSignalsTwice() throws {
        let home = try SignInHome(nil)
        let worker = try HeldWorker("fake-1", in: home)
        let login = try home.signIn(at: "https://id.example.com")
        worker.isAsked.wait()
        login.send(SIGHUP)
        // The program has taken the first signal, so the next one is separate.
        while login.isAt("signals"), !login.isAt("patience") {}
        login.send(SIGHUP)
        worker.answers.open()
        worker.isRevoking.wait()
        login.send(SIGHUP)
        worker.revokes.open()
        let outcome = try login.end()
        #expect(outcome.status == 129, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("the issued tokens were revoked")
                && !outcome.error.contains("ended at once"), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1 && home.asked("revoke")[0].contains("refresh-of-fake-1"))
        #expect(try home.run("token", "work").status == 3)
    }

    /// The vault is kept by another program while the signal comes, and free when what was given is being given back already.
    @Test(arguments: [false, true])
    func whatIsStoredTooLateIsTakenBack(_ wasSignedIn: Bool) throws {
        let home = try SignInHome(nil)
        if wasSignedIn {
            try SaidWorker().place(in: home)
            #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        }
        let worker = try HeldWorker("fake-2", in: home)
        let login = try home.signIn(at: "https://id.example.com")
        worker.isAsked.wait()
        let file = try PosixDirectory(home.vault.removingLastComponent()).open("default.vault", .readWrite)
        #expect(try file.tryLock(.exclusive))
        worker.answers.open()
        while !login.isAt("vault-writer") {}
        login.send(SIGINT)
        worker.isRevoking.wait()
        let before = try home.vaultChanged()
        file.unlock()
        while try home.vaultChanged() == before {}
        worker.revokes.open()
        let outcome = try login.end()
        #expect(outcome.status == 130, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("the issued tokens were revoked")
                && !outcome.error.contains("may still be stored"), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1 && home.asked("revoke")[0].contains("refresh-of-fake-2"))
        let token = try home.run("token", "work")
        #expect(
            wasSignedIn ? token.output == "fake-1" : token.status == 3, "\(token.output) \(token.error)")
    }

    /// `vaultctl login 2>&1 | head -1`: the tokens are not lost when the reader of the messages is gone.
    @Test func whoeverStopsReadingDoesNotEndASignIn() throws {
        let home = try SignInHome(nil)
        let said = try Gate(watching: "\(home.path)/said")
        let answer = try Gate(holding: "\(home.path)/lock")
        try SaidWorker(
            signIn: "exec 9>'\(said.path)'; echo >&9; flock -s '\(answer.path)' true; \(SaidWorker.open); "
                + SaidWorker.signedIn("fake-1")
        ).place(in: home)
        let login = try home.signIn(at: "https://id.example.com")
        said.wait()
        try login.stopReading()
        answer.open()
        #expect(try login.end().status == 0)
        #expect(try home.run("token", "work").output == "fake-1")
    }

    /// A full pipe that no process reads delays no end, whatever the command has to say.
    @Test(arguments: [SIGINT, SIGTERM])
    func whoeverDoesNotReadDoesNotKeepASignIn(_ signal: Int32) throws {
        let home = try SignInHome(nil)
        let said = try Gate(watching: "\(home.path)/said")
        let answer = try Gate(holding: "\(home.path)/lock")
        let alive = try Gate(watching: "\(home.path)/alive")
        try SaidWorker(
            signIn:
                "exec 9>'\(said.path)' 8>'\(alive.path)'; echo >&9; flock -s '\(answer.path)' true; \(SaidWorker.open); "
                + "while :; do sleep 1000; done"
        ).place(in: home)
        let login = try home.signIn(at: "https://id.example.com")
        said.wait()
        try login.fill()
        answer.open()
        login.send(signal)
        // The worker does not end with its input, so the second signal ends it.
        while login.isAt("signals"), !login.isAt("patience") {}
        login.send(signal)
        let hasEnded = login.hasEnded()
        #expect(hasEnded && alive.isSoonLeft())
        if !hasEnded { login.send(SIGKILL) }
        #expect(try login.end().status == 128 + signal)
    }

    /// One that comes as soon as signals are taken, before the other program is there or has been asked.
    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func aSignalAtTheBeginningEndsIt(_ signal: Int32) throws {
        let home = try SignInHome(nil)
        // The worker ends with its input, or leaves a file if it does not.
        try SaidWorker(signIn: "timeout 60 cat >/dev/null || : >'\(home.path)/late'").place(in: home)
        for _ in 0..<20 {
            let login = try home.start([
                "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--device",
            ])
            while try !login.takes(signal) {}
            login.send(signal)
            let outcome = try login.end()
            #expect(outcome.status == 128 + signal, "\(outcome.status) \(outcome.error)")
            #expect(!outcome.error.contains("are being revoked"), "\(outcome.error)")
            try #require(home.contents("late") == nil)
        }
    }

    /// All of the time passes while the program is stopped, the agent's too: it tries once more, whatever the clocks say.
    @Test func whatIsBeingStoredByOneWhoWasStoppedIsStored() throws {
        let home = try SignInHome(nil)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let tell = { (signal: String) in
            _ = try RunningCommand(
                "/bin/bash", ["-c", LockedMeanwhileTests.signalling(signal, home)], home.environment
            ).end()
        }
        defer { try? tell("KILL") }
        let said = try Gate(watching: "\(home.path)/said")
        try SaidWorker(
            signIn: "exec 9>'\(said.path)'; " + LockedMeanwhileTests.signalling("STOP", home)
                + SaidWorker.signedIn("fake-1") + "; sleep 1000"
        ).place(in: home)
        let login = try home.start(
            [
                "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--no-browser",
                "--timeout", "20",
            ], without: "VAULTCTL_KEY_FILE")
        said.wait()
        login.stop()
        // Another program measures the time, because this command is stopped.
        #expect(try RunningCommand("/bin/sleep", ["22"], [:]).end().status == 0)
        try tell("CONT")
        login.send(SIGCONT)
        let outcome = try login.end()
        #expect(outcome.status == 0, "\(outcome.status) \(outcome.error)")
        #expect(home.asked("revoke").isEmpty)
        #expect(try home.run("token", "work").output == "fake-1")
    }

    /// The code was exchanged, and the keys of the ID token do not come.
    @Test(.timeLimit(.minutes(20)), arguments: [SIGINT, SIGTERM, SIGKILL])
    func whatTheWorkerHasIsRevoked(_ signal: Int32) throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let alive = try Gate(watching: "\(home.path)/alive")
        try home.place(.script("exec \"$REAL\" 9>'\(alive.path)'"))
        try provider.tell("fail", ["path": "/o/.well-known/jwks.json", "how": "hang", "times": 9])
        let login = try home.start([
            "login", "work", "--issuer", provider.issuer, "--client-id", provider.clientID("browser"),
            "--scope", "openid", "--scope", "read",
        ])
        try provider.tell("held", ["count": 1])
        login.send(signal)
        let outcome = try login.end()
        #expect(outcome.status == 128 + signal, "\(outcome.status) \(outcome.error)")
        alive.wait()
        let sessions = try provider.tell("sessions", ["user": "alice"])
        #expect(sessions["families_ever"].number == 1 && sessions["refresh_tokens"].number == 0)
    }

    /// A second signal asks for an end at once, and the command ends at once.
    @Test func aSecondSignalEndsItAtOnce() throws {
        let home = try SignInHome(nil)
        let asked = try Gate(watching: "\(home.path)/is-asked")
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        defer { _ = try? home.run("agent", "--stop") }
        let settings = home.environment.map { "\($0.key)='\($0.value)'" }.joined(separator: " ")
        try SaidWorker(
            signIn: "env \(settings) '\(home.program)' lock >/dev/null 2>&1; "
                + SaidWorker.signedIn("fake-2"),
            revoke: "exec 9>'\(asked.path)'; echo >&9; while :; do sleep 1000; done"
        ).place(in: home)
        let command = try home.start(["login", "work", "--no-browser"], without: "VAULTCTL_KEY_FILE")
        _ = try command.expect(after: "cannot be stored yet", until: "\n")
        command.send(SIGINT)
        asked.wait()
        _ = try command.expect(after: "Ctrl-C ends this at once", until: "\n")
        command.send(SIGINT)
        let outcome = try command.end()
        #expect(outcome.status == 130 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.hasSuffix(
                "vaultctl: note: ended at once: the issued tokens may be valid until they expire\n"),
            "\(outcome.error)")
        #expect(asked.isLeft)
        #expect(home.asked("revoke").count == 1)
    }
}
#endif
