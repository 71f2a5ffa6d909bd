#if OAuth
import Glibc
import TestLanes
import Testing
import TokenVault

/// Signing in, renewing and signing out where nothing can be written to the vault: the messages, and what is
/// left where.
@Suite(.tags(.provider), .from(.all)) struct FailingDiskTests {
    private func signedIn() throws -> SignInHome {
        let home = try SignInHome(nil)
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", #","expiresIn":3600"#), revoke: "echo '{\"revoked\":{}}'"
        ).place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        return home
    }

    /// `vaultctl` where files end before the records of a vault begin (`RLIMIT_FSIZE`, in KiB).
    private func run(_ home: SignInHome, _ arguments: String...) throws -> RunningCommand.Outcome {
        try RunningCommand(
            "/bin/bash", ["-c", "ulimit -f 4; exec \"$0\" \"$@\"", home.program] + arguments, home.environment
        ).end()
    }

    @Test func aSignInThatIsNotStoredIsRevoked() throws {
        let home = try signedIn()
        try SaidWorker(signIn: SaidWorker.signedIn("fake-2"), revoke: "echo '{\"revoked\":{}}'").place(
            in: home)
        let outcome = try run(home, "login", "work", "--no-browser")
        #expect(![0, 3].contains(outcome.status), "\(outcome.status) \(outcome.error)")
        #expect(outcome.error.contains("could not be stored and were revoked"), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1 && home.asked("revoke")[0].contains("refresh-of-fake-2"))
        #expect(try home.run("token", "work").output == "fake-1")
    }

    @Test func nobodyIsAskedForWhatCannotBeStored() throws {
        let home = try signedIn()
        let outcome = try run(home, "token", "work", "--renew")
        #expect(outcome.status != 0 && outcome.output.isEmpty, "\(outcome.status) \(outcome.error)")
        #expect(home.asked("refresh").isEmpty && home.asked("revoke").isEmpty)
        #expect(try home.run("token", "work").output == "fake-1")
    }

    @Test func whoIsStillSignedInIsTold() throws {
        let home = try signedIn()
        let outcome = try run(home, "logout", "work")
        #expect(![0, 3].contains(outcome.status), "\(outcome.status) \(outcome.error)")
        #expect(
            outcome.error.contains("the provider was not notified")
                && outcome.error.contains("at the provider's own page"), "\(outcome.error)")
        #expect(home.asked("revoke").isEmpty)
        #expect(try home.run("token", "work").output == "fake-1")
    }
}
#endif
