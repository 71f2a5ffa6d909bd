#if OAuth
import Foundation
import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

/// What becomes of new tokens when the vault goes while the provider is asked.
@Suite(.tags(.provider), .from(.all)) struct LockedMeanwhileTests {
    /// A home whose agent holds the vault, and whose worker does `command` with `vaultctl` before it answers.
    private func home(before command: String, then answer: String = answer) throws -> SignInHome {
        try home(answering: answer) { home in
            let run = home.environment.map { "\($0.key)='\($0.value)'" }.joined(separator: " ")
            return "env \(run) '\(home.program)' \(command) >/dev/null 2>&1; "
        }
    }

    private static let answer = SaidWorker.refreshed("fake-2", #","expiresIn":3600"#)

    /// The same, with a worker that does what `script` says in the shell.
    private func home(
        answering answer: String = answer, doing script: (SignInHome) -> String
    ) throws -> SignInHome {
        let home = try SignInHome(nil)
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired),
            refresh: script(home) + answer
        ).place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        return home
    }

    @Test func tokensAreStoredOnceTheVaultIsUnlocked() throws {
        let home = try home(before: "lock")
        defer { _ = try? home.run("agent", "--stop") }
        let command = try home.start(["token", "work"], without: "VAULTCTL_KEY_FILE")
        _ = try command.expect(after: "cannot be stored yet", until: "\n")
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let outcome = try command.end()
        #expect(outcome.status == 0 && outcome.output == "fake-2", "\(outcome.error)")
        #expect(home.asked("refresh").count == 1 && home.asked("revoke").isEmpty)
        #expect(try home.run("token", "work").output == "fake-2")
    }

    /// That the vault is locked is not all there is to say, also where a key file is named that is not used.
    @Test(arguments: [nil, "VAULTCTL_KEY_FILE"])
    func thatTokensAreLostIsSaid(_ variable: String?) throws {
        let home = try home(before: "lock")
        defer { _ = try? home.run("agent", "--stop") }
        let outcome = try home.start(["token", "work", "--timeout", "10"], without: variable).end()
        #expect(outcome.status == 4 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains("could not be stored and are lost: locked"), "\(outcome.error)")
        #expect(outcome.error.contains("is not used while") == (variable == nil), "\(outcome.error)")
    }

    /// The agent is gone, and a key is at hand.
    @Test func tokensAreStoredWithoutTheAgent() throws {
        let home = try home(before: "agent --stop")
        defer { _ = try? home.run("agent", "--stop") }
        let outcome = try home.run("token", "work")
        #expect(outcome.status == 0 && outcome.output == "fake-2", "\(outcome.error)")
        #expect(home.asked("refresh").count == 1 && home.asked("revoke").isEmpty)
    }

    /// All of the time passes while the program is stopped: it tries once more, whatever the clocks say.
    @Test func tokensAreStoredByOneWhoWasStopped() throws {
        let home = try home(before: "lock")
        defer { _ = try? home.run("agent", "--stop") }
        let command = try home.start(["token", "work", "--timeout", "30"], without: "VAULTCTL_KEY_FILE")
        _ = try command.expect(after: "cannot be stored yet", until: "\n")
        command.stop()
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        // Another program measures the time, because this command is stopped.
        #expect(try RunningCommand("/bin/sleep", ["32"], [:]).end().status == 0)
        command.send(SIGCONT)
        let outcome = try command.end()
        #expect(outcome.status == 0 && outcome.output == "fake-2", "\(outcome.status) \(outcome.error)")
        #expect(home.asked("refresh").count == 1 && home.asked("revoke").isEmpty)
        #expect(try home.run("token", "work").output == "fake-2")
    }

    /// Sends `signal` to the agents of `home`.
    static func signalling(_ signal: String, _ home: SignInHome) -> String {
        let name = FilePath(home.path).lastComponent?.string ?? ""
        return "for link in /proc/[0-9]*/exe; do case $(readlink $link) in */\(name)/bin/vaultctl-agent) "
            + "link=${link%/exe}; kill -\(signal) ${link#/proc/};; esac; done; "
    }

    private static let nextTry = "the next call sends the previous token once more"

    /// The session goes on where the provider allows another try: nothing of it was given back.
    private func expectToGoOn(_ home: SignInHome) throws {
        #expect(home.asked("revoke").isEmpty)
        #expect(home.asked("refresh").count == 1)
        try SaidWorker(refresh: Self.answer).place(in: home)
        let next = try home.run("token", "work")
        #expect(next.status == 0 && next.output == "fake-2", "\(next.status) \(next.error)")
        #expect(home.asked("refresh").count == 2 && home.asked("refresh")[1].contains(#""isRetry":true"#))
    }

    /// The first attempt to store them hangs, and says nothing of an obstacle.
    @Test func tokensWhoseStoringHangsAreTriedOnceMore() throws {
        let home = try home { Self.signalling("STOP", $0) }
        let outcome = try home.start(["token", "work", "--timeout", "10"], without: "VAULTCTL_KEY_FILE").end()
        #expect(outcome.status == 10 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("could not be stored in time and are lost")
                && outcome.error.contains(Self.nextTry),
            "\(outcome.error)")
        #expect(
            try RunningCommand("/bin/bash", ["-c", Self.signalling("KILL", home)], home.environment).end()
                .status
                == 0)
        try expectToGoOn(home)
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func tokensOfOneWhoIsEndedAreTriedOnceMore(_ signal: Int32) throws {
        let home = try home(before: "lock")
        defer { _ = try? home.run("agent", "--stop") }
        let command = try home.start(["token", "work"], without: "VAULTCTL_KEY_FILE")
        _ = try command.expect(after: "cannot be stored yet", until: "\n")
        command.send(signal)
        let outcome = try command.end()
        #expect(
            outcome.status == 128 + signal && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains(Self.nextTry), "\(outcome.error)")
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        try expectToGoOn(home)
    }

    @Test func tokensThatCannotBeStoredAreTriedOnceMore() throws {
        let home = try home(before: "lock")
        defer { _ = try? home.run("agent", "--stop") }
        let command = try home.start(["token", "work", "--timeout", "10"], without: "VAULTCTL_KEY_FILE")
        let outcome = try command.end()
        #expect(outcome.status == 4 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("could not be stored and are lost")
                && outcome.error.contains(Self.nextTry),
            "\(outcome.error)")
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        try expectToGoOn(home)
    }
}
#endif
