#if OAuth
import Foundation
import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// `vaultctl` with a `vaultctl-oauth` or a provider that does not answer: it ends in time, and nothing of it is left.
@Suite(.tags(.provider), .from(.all)) struct EndedWorkerTests {
    /// Returns a script that says that it is there, and hangs. The reader of the pipe sees its end.
    private static func hanging(_ pipe: Gate) -> String {
        "exec 9>'\(pipe.path)'; echo >&9; while :; do sleep 1000; done"
    }

    private func signedIn() throws -> SignInHome {
        let home = try SignInHome(nil)
        try SaidWorker(signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired)).place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        return home
    }

    @Test(arguments: [nil, SIGINT, SIGTERM, SIGHUP])
    func aRefreshThatHangsIsEnded(_ signal: Int32?) throws {
        let home = try signedIn()
        let pipe = try Gate(watching: "\(home.path)/alive")
        try SaidWorker(refresh: Self.hanging(pipe)).place(in: home)
        let command = try home.start(["token", "work", "--timeout", signal == nil ? "10" : "300"])
        pipe.wait()
        if let signal { command.send(signal) }
        let outcome = try command.end()
        #expect(outcome.status == signal.map { 128 + $0 } ?? 10, "\(outcome.error)")
        #expect(
            outcome.error.contains("a renewal was under way") == (signal != nil) && !outcome.error.isEmpty,
            "\(outcome.error)")
        #expect(outcome.output.isEmpty)
        #expect(pipe.isLeft)
    }

    /// The answer is already lost when the signal comes, and no request is under way. The command still
    /// reports the loss.
    @Test func whoEndsItBetweenTwoRequestsIsTold() throws {
        let home = try signedIn()
        let pipe = try Gate(watching: "\(home.path)/alive")
        try SaidWorker(refresh: "exec 9>'\(pipe.path)'; echo >&9; exit 1").place(in: home)
        let command = try home.start(["token", "work", "--timeout", "300"])
        pipe.wait()
        #expect(pipe.isSoonLeft())
        command.send(SIGTERM)
        let outcome = try command.end()
        #expect(outcome.status == 143 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains("a renewal was under way"), "\(outcome.error)")
    }

    /// The answer is lost, whatever ended the worker. A provider that allows another try gives the new tokens
    /// again.
    @Test func aRefreshWhoseWorkerIsKilledIsTriedOnceMore() throws {
        let home = try signedIn()
        try SaidWorker(
            refresh: "case $line in *'\"isRetry\":true'*) "
                + SaidWorker.refreshed("fake-2", #","expiresIn":3600"#) + ";; *) kill -9 $$;; esac"
        ).place(in: home)
        let outcome = try home.run("token", "work")
        #expect(outcome.status == 0 && outcome.output == "fake-2", "\(outcome.status) \(outcome.error)")
        #expect(home.asked("refresh").count == 2)
    }

    /// The command takes what the provider gave, though the time passed while the command was stopped.
    /// Sending the old token once more would end the session.
    @Test func anAnswerToOneWhoWasStoppedIsTaken() throws {
        let home = try signedIn()
        let asked = try Gate(watching: "\(home.path)/is-asked")
        let waits = try Gate(holding: "\(home.path)/lock")
        let late = try Gate(watching: "\(home.path)/is-late")
        try SaidWorker(
            refresh: "exec 9>'\(asked.path)'; echo >&9; flock -s '\(waits.path)' true; "
                + SaidWorker.refreshed("fake-2", #","expiresIn":3600"#)
                + "; exec 9>'\(late.path)'; sleep 11; echo >&9"
        ).place(in: home)
        let command = try home.start(["token", "work", "--timeout", "10"])
        asked.wait()
        command.stop()
        waits.open()
        // The worker measures when the time of its caller has passed.
        late.wait()
        command.send(SIGCONT)
        let outcome = try command.end()
        #expect(outcome.status == 0 && outcome.output == "fake-2", "\(outcome.status) \(outcome.error)")
        #expect(home.asked("refresh").count == 1)
        #expect(try home.run("token", "work").output == "fake-2")
    }

    /// The answer is there when the signal is: it is stored, or given back where that takes too long.
    @Test(arguments: [SIGINT, SIGTERM])
    func anAnswerThatIsThereWithTheSignalIsTaken(_ signal: Int32) throws {
        let home = try signedIn()
        let asked = try Gate(watching: "\(home.path)/is-asked")
        let waits = try Gate(holding: "\(home.path)/lock")
        let said = try Gate(watching: "\(home.path)/has-said")
        try SaidWorker(
            refresh: "exec 9>'\(asked.path)'; echo >&9; flock -s '\(waits.path)' true; "
                + SaidWorker.refreshed("fake-2", #","expiresIn":3600"#) + "; exec 9>'\(said.path)'; echo >&9"
        ).place(in: home)
        let command = try home.start(["token", "work", "--timeout", "300"])
        asked.wait()
        command.stop()
        waits.open()
        said.wait()
        command.send(signal)
        command.send(SIGCONT)
        let outcome = try command.end()
        #expect(outcome.status == 128 + signal, "\(outcome.status) \(outcome.error)")
        #expect(home.asked("refresh").count == 1)
        if home.asked("revoke").isEmpty {
            #expect(try home.run("token", "work").output == "fake-2")
            #expect(home.asked("refresh").count == 1)
        } else {
            #expect(home.asked("revoke")[0].contains("refresh-of-fake-2"))
        }
    }

    /// A provider that accepts a token once has issued new tokens by then, and they were lost. The message
    /// says more than that the provider refuses the old token.
    @Test func aSessionThatEndsAfterALostAnswerIsSaidToLeaveTokens() throws {
        let home = try signedIn()
        try SaidWorker(
            refresh:
                #"case $line in *'"isRetry":true'*) echo '{"failed":{"_0":{"kind":"invalidGrant"}}}';; *) exit 3;; esac"#
        ).place(in: home)
        let outcome = try home.run("token", "work")
        #expect(outcome.status == 3, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("tokens of that renewal may be valid")
                && outcome.error.contains("vaultctl login work"), "\(outcome.error)")
        #expect(home.asked("refresh").count == 2)
    }

    /// How `command` ends by two signals that are there at once, so that it cannot end by itself after the first.
    private func endedTwice(_ command: RunningCommand) throws -> RunningCommand.Outcome {
        command.stop()
        for signal in [SIGINT, SIGTERM, SIGCONT] { command.send(signal) }
        let outcome = try command.end()
        #expect([128 + SIGINT, 128 + SIGTERM].contains(outcome.status), "\(outcome.status) \(outcome.error)")
        return outcome
    }

    /// Also while the session is being deleted: a lock that another program has keeps that.
    @Test func aSecondSignalInALogoutSaysWhatItLeaves() throws {
        let home = try signedIn()
        let file = try PosixDirectory(home.vault.removingLastComponent()).open("default.vault", .readWrite)
        #expect(try file.tryLock(.exclusive))
        let command = try home.start(["logout", "work", "--timeout", "300"])
        while !command.isAt("vault-writer") {}
        let outcome = try endedTwice(command)
        file.unlock()
        #expect(
            outcome.error.contains("ended at once: the session may be deleted from the vault"),
            "\(outcome.error)")
        #expect(home.asked("revoke").isEmpty)
    }

    /// Nor when the provider is being told.
    @Test func aSecondSignalBeforeTheProviderIsToldSaysSo() throws {
        let home = try signedIn()
        let pipe = try Gate(watching: "\(home.path)/alive")
        try SaidWorker(revoke: Self.hanging(pipe)).place(in: home)
        let command = try home.start(["logout", "work", "--timeout", "300"])
        pipe.wait()
        let outcome = try endedTwice(command)
        #expect(
            outcome.error.contains(
                "ended at once: signed out here, but the session may not have been revoked"),
            "\(outcome.error)")
        #expect(pipe.isLeft)
        #expect(try home.run("token", "work").status == 3)
    }

    /// The new session is there; the one before is not told to the provider.
    @Test func aSecondSignalInALoginSaysWhatItLeaves() throws {
        let home = try signedIn()
        let pipe = try Gate(watching: "\(home.path)/alive")
        try SaidWorker(signIn: SaidWorker.signedIn("fake-2"), revoke: Self.hanging(pipe)).place(in: home)
        let command = try home.start(["login", "work", "--no-browser"])
        pipe.wait()
        let outcome = try endedTwice(command)
        #expect(
            outcome.error.contains("ended at once: signed in, but the tokens of the previous sign-in"),
            "\(outcome.error)")
        #expect(pipe.isLeft)
        #expect(try home.run("token", "work").output == "fake-2")
    }

    /// A worker that was stopped is woken before it is given up: what it has is had once.
    @Test(arguments: ["token", "login"])
    func anAnswerOfAWorkerThatWasStoppedIsTaken(_ command: String) throws {
        let home = try signedIn()
        let answer = SaidWorker.refreshed("fake-2", #","expiresIn":3600"#)
        try SaidWorker(
            signIn: "kill -STOP $$; " + SaidWorker.signedIn("fake-2"), refresh: "kill -STOP $$; " + answer
        ).place(in: home)
        let more = command == "login" ? ["--no-browser"] : []
        let outcome = try home.start([command, "work", "--timeout", "15"] + more).end()
        #expect(outcome.status == 0, "\(outcome.status) \(outcome.error)")
        #expect(home.asked("refresh").count == (command == "token" ? 1 : 0))
        #expect(try home.run("token", "work").output == "fake-2")
    }

    /// The request is larger than what the kernel keeps for a program that does not read.
    @Test(arguments: [nil, SIGINT, SIGTERM])
    func aWorkerThatReadsNothingIsEnded(_ signal: Int32?) throws {
        let home = try SignInHome(nil)
        let metadata = #"{\"a\":\""# + String(repeating: "x", count: 400_000) + #"\"}"#
        let text = "\(home.path)/text"
        try
            #"{"signedIn":{"_0":{"tokens":{"accessToken":"fake","refreshToken":"fake-refresh","tokenType":"Bearer""#
            .appending(#"\#(SaidWorker.expired)},"metadata":"\#(metadata)","authentication":"none"}}}\#n"#)
            .write(toFile: text, atomically: true, encoding: .utf8)
        try home.place(.script("read -r line; cat '\(text)'"))
        let login = try home.signIn(at: "https://id.example.com").end()
        #expect(login.status == 0, "\(login.error)")
        let pipe = try Gate(watching: "\(home.path)/alive")
        try home.place(.script(Self.hanging(pipe)))
        let command = try home.start(["token", "work", "--timeout", signal == nil ? "10" : "300"])
        pipe.wait()
        if let signal { command.send(signal) }
        let outcome = try command.end()
        #expect(outcome.status == signal.map { 128 + $0 } ?? 10, "\(outcome.error)")
        #expect(pipe.isLeft)
    }

    /// After a signal, the command still has time to tell the provider of the logout.
    @Test(arguments: [SIGINT, SIGTERM])
    func aSignalLeavesALogoutTimeToTellTheProvider(_ signal: Int32) throws {
        let home = try signedIn()
        let isAsked = try Gate(watching: "\(home.path)/is-asked")
        let answer = try Gate(holding: "\(home.path)/lock")
        try SaidWorker(
            revoke: "exec 9>'\(isAsked.path)'; echo >&9; flock -s '\(answer.path)' true; "
                + "echo yes >'\(home.path)/is-told'; echo '{\"revoked\":{}}'"
        ).place(in: home)
        let command = try home.start(["logout", "work"])
        isAsked.wait()
        command.send(signal)
        answer.open()
        let outcome = try command.end()
        #expect(outcome.status == 128 + signal && !outcome.error.contains("not revoked"), "\(outcome.error)")
        #expect(home.contents("is-told") == "yes\n")
    }

    /// The user may have signed in by then, and no program knows.
    @Test func aSignInWhoseWorkerIsKilledMayHaveGivenTokens() throws {
        let home = try SignInHome(nil)
        try SaidWorker(signIn: SaidWorker.open + "; kill -9 $$").place(in: home)
        let outcome = try home.signIn(at: "https://id.example.com").end()
        #expect(outcome.status == 8, "\(outcome.error)")
        #expect(
            outcome.error.contains("may have issued tokens that were lost")
                && outcome.error.contains("at the provider's own page"), "\(outcome.error)")
        try SaidWorker(signIn: "kill -9 $$").place(in: home)
        let early = try home.signIn(at: "https://id.example.com").end()
        #expect(early.status == 8 && !early.error.contains("were lost"), "\(early.error)")
    }

    /// The session is gone from the vault, whatever the provider does and whatever ends the command.
    @Test(arguments: [nil, SIGINT, SIGTERM])
    func aLogoutThatHangsHasForgotten(_ signal: Int32?) throws {
        let home = try signedIn()
        let pipe = try Gate(watching: "\(home.path)/alive")
        try SaidWorker(revoke: Self.hanging(pipe)).place(in: home)
        let command = try home.start(["logout", "work", "--timeout", signal == nil ? "10" : "300"])
        pipe.wait()
        let start = ContinuousClock.now
        if let signal { command.send(signal) }
        let outcome = try command.end()
        // A signal shortens the wait of 300 s. Without a signal, the timeout of 10 s applies.
        #expect(ContinuousClock.now - start < .seconds(20))
        #expect(outcome.status == signal.map { 128 + $0 } ?? 10, "\(outcome.error)")
        #expect(
            outcome.error.contains("signed out here, but the tokens may not have been revoked")
                && outcome.error.contains("the provider did not answer in time")
                && outcome.error.contains("the provider's own page"), "\(outcome.error)")
        #expect(outcome.error.contains("is being revoked") == (signal != nil), "\(outcome.error)")
        #expect(pipe.isLeft)
        let token = try home.run("token", "work")
        #expect(token.status == 3 && token.error.contains("not signed in to \"work\""), "\(token.error)")
    }

    /// Tokens that the provider issued and that were lost cannot be revoked. The command that ends the
    /// session says so.
    @Test(arguments: [["logout", "work"], ["login", "work", "--no-browser"]])
    func anEndAfterALostAnswerIsSaidToLeaveTokens(_ arguments: [String]) throws {
        let home = try signedIn()
        try SaidWorker(signIn: SaidWorker.signedIn("fake-2"), refresh: "exit 3").place(in: home)
        #expect(try home.run("token", "work").status == 10)
        let outcome = try home.start(arguments).end()
        #expect(outcome.status == (arguments[0] == "logout" ? 10 : 0), "\(outcome.error)")
        #expect(outcome.error.contains("may have issued newer tokens"), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1)
    }

    /// The same of an answer that came and brought nothing: that there was none is not claimed.
    @Test func anEndAfterAUselessAnswerIsSaidToLeaveTokens() throws {
        let home = try signedIn()
        try SaidWorker(refresh: #"echo '{"failed":{"_0":{"kind":"serverError","status":503}}}'"#).place(
            in: home)
        #expect(try home.run("token", "work").status == 8)
        let outcome = try home.run("logout", "work")
        #expect(outcome.status == 10, "\(outcome.error)")
        #expect(outcome.error.contains("may have issued newer tokens"), "\(outcome.error)")
        #expect(!outcome.error.contains("no answer"), "\(outcome.error)")
    }

    /// A command that ends a session while another program waits for an answer says that the program waits.
    /// The waiting program then reports the tokens that it could not have revoked, since it never got them.
    @Test(arguments: [["logout", "work"], ["login", "work", "--no-browser"]])
    func aLostAnswerForASessionThatEndedMeanwhileIsTold(_ arguments: [String]) throws {
        let home = try signedIn()
        let asked = try Gate(watching: "\(home.path)/is-asked")
        let gate = try Gate(holding: "\(home.path)/gate")
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-2"),
            refresh: "echo >'\(asked.path)'; flock -s '\(gate.path)' true; exit 3"
        ).place(in: home)
        let token = try home.start(["token", "work"])
        asked.wait()
        let end = try home.start(arguments).end()
        #expect(end.status == 0, "\(end.error)")
        #expect(end.error.contains("revokes the new tokens when they arrive"), "\(end.error)")
        gate.open()
        let outcome = try token.end()
        #expect(outcome.status == 10 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("may have issued newer tokens"), "\(outcome.error)")
        #expect(home.asked("refresh").count == 1)
    }

    /// What was never sent has left nothing.
    @Test func aRenewalThatWasNotSentLeavesNothing() throws {
        let home = try signedIn()
        let asked = try Gate(watching: "\(home.path)/is-asked")
        let gate = try Gate(holding: "\(home.path)/gate")
        try SaidWorker(
            refresh: "echo >'\(asked.path)'; flock -s '\(gate.path)' true; "
                + #"echo '{"failed":{"_0":{"kind":"notSent"}}}'"#
        ).place(in: home)
        let token = try home.start(["token", "work"])
        asked.wait()
        #expect(try home.run("logout", "work").status == 0)
        gate.open()
        let outcome = try token.end()
        #expect(outcome.status == 3 && !outcome.error.contains("newer"), "\(outcome.error)")
    }

    @Test func aProviderThatHangsDoesNotKeepALogout() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        try home.signIn()
        try provider.tell("fail", ["path": "/o/revoke_token/", "how": "hang", "times": 9])
        let outcome = try home.run("logout", "work", "--timeout", "3")
        #expect(outcome.status == 10, "\(outcome.error)")
        #expect(
            outcome.error.hasPrefix("vaultctl: signed out here, but the tokens may not have been revoked"))
        #expect(try home.run("token", "work").status == 3)
        #expect(try home.run("profiles").output == "work\tsigned-out\t\(provider.issuer)\n")
    }

    /// Closes what the child of a busy process may have been given.
    private static let closing =
        "for file in /proc/$$/fd/*; do file=${file##*/}; ((file < 3)) || eval \"exec $file>&-\"; done; "

    /// Swift's tasks end the program where they get no descriptor: there is a line for it instead.
    @Test func fewDescriptorsAreNoCrash() throws {
        let home = try signedIn()
        try SaidWorker(refresh: SaidWorker.refreshed("fake-2", #","expiresIn":3600"#)).place(in: home)
        var statuses = Set<Int32>()
        // A lower limit is too small to load the program.
        for limit in Array(6...16) + [20, 24, 32, 40, 48, 64, 128] {
            let outcome = try RunningCommand(
                "/bin/bash",
                [
                    "-c", Self.closing + "ulimit -n \(limit); exec \"$0\" \"$@\"", home.program, "token",
                    "work", "--renew",
                ],
                home.environment
            ).end()
            #expect([0, 1, 8].contains(outcome.status), "\(limit): \(outcome.status) \(outcome.error)")
            #expect(outcome.status == 0 || outcome.error.contains("open files"), "\(limit): \(outcome.error)")
            #expect((outcome.status == 0) == (outcome.output == "fake-2"))
            statuses.insert(outcome.status)
        }
        #expect(statuses.contains(0) && statuses.contains(8))
    }

    /// Swift's tasks wait for ever where there is no thread for them: there is a line for it instead.
    @Test(.timeLimit(.minutes(20))) func fewThreadsAreNoWaiting() throws {
        let home = try signedIn()
        try SaidWorker(refresh: SaidWorker.refreshed("fake-2", #","expiresIn":3600"#)).place(in: home)
        var (successes, refusals) = (0, 0)
        // From room for few thread stacks upwards. Once the memory is enough, more memory is enough as well.
        for megabytes in stride(from: 40, to: 400, by: 8) {
            let outcome = try RunningCommand(
                "/bin/bash",
                [
                    "-c", Self.closing + "ulimit -v \(megabytes << 10); exec \"$0\" \"$@\"", home.program,
                    "token", "work", "--renew", "--timeout", "60",
                ],
                home.environment
            ).end()
            if outcome.status == 0 { successes += 1 }
            if outcome.status == 8, outcome.error.contains("ulimit -v") { refusals += 1 }
            let expected: [Int32] = successes > 0 ? [0] : [0, 8]
            #expect(expected.contains(outcome.status), "\(megabytes) MiB: \(outcome.status) \(outcome.error)")
        }
        #expect(successes > 0 && refusals > 0, "\(successes), \(refusals)")
    }
}
#endif
