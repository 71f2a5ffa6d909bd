#if OAuth
import Foundation
import Testing
import TokenVault
import TokenVaultAuth

/// What becomes of new tokens when the vault goes while the provider is asked.
@Suite struct LockedMeanwhileTests {
    /// A home whose agent holds the vault, and whose worker does `command` with `vaultctl` before it answers.
    private func home(before command: String) throws -> SignInHome {
        let home = try SignInHome(nil)
        let run = home.environment.map { "\($0.key)='\($0.value)'" }.joined(separator: " ")
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired),
            refresh: "env \(run) '\(home.program)' \(command) >/dev/null 2>&1; "
                + SaidWorker.refreshed("fake-2", #","expiresIn":3600"#)
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

    /// The agent is gone, and a key is at hand.
    @Test func tokensAreStoredWithoutTheAgent() throws {
        let home = try home(before: "agent --stop")
        defer { _ = try? home.run("agent", "--stop") }
        let outcome = try home.run("token", "work")
        #expect(outcome.status == 0 && outcome.output == "fake-2", "\(outcome.error)")
        #expect(home.asked("refresh").count == 1 && home.asked("revoke").isEmpty)
    }

    @Test func tokensThatCannotBeStoredAreRevoked() throws {
        let home = try home(before: "lock")
        defer { _ = try? home.run("agent", "--stop") }
        let command = try home.start(["token", "work", "--timeout", "6"], without: "VAULTCTL_KEY_FILE")
        let outcome = try command.end()
        #expect(outcome.status == 4 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains("could not be stored and are lost"), "\(outcome.error)")
        #expect(home.asked("refresh").count == 1)
        #expect(home.asked("revoke").count == 1 && home.asked("revoke")[0].contains("refresh-of-fake-2"))
    }
}
#endif
