#if OAuth
import Foundation
import Glibc
import Testing
import TokenVault
import TokenVaultAuth

/// `vaultctl token` and `vaultctl logout`, against a real provider.
@Suite struct TokenCommandTests {
    /// While the token is good nobody is started, and the provider's program need not even be there.
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
        // Due, but still good: it is printed all the same.
        _ = try await home.expire(since: -1_800)
        let due = try home.run("token", "work", "--min-valid", "1h")
        #expect(due.output == token && due.status == 0, "\(due.error)")
        // Over.
        _ = try await home.expire()
        let over = try home.run("token", "work")
        #expect(over.status == 8 && over.output.isEmpty && over.error.contains("install vaultctl-oauth"))
        #expect(try provider.requests("refresh_token") == 0)
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
        // Who was signed in and the ID token are kept.
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
                == "vaultctl: the provider has ended the session: \"vaultctl login PROFILE\" signs in again\n"
        )
        #expect(try home.run("token", "work").status == 3)
        #expect(try home.run("profiles").output == "work\tsigned-out\t\(provider.issuer)\n")
        #expect(try home.run("login", "work").status == 0)
        #expect(try home.run("token", "work").status == 0)
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
        #expect(outcome.error.contains("signed out here, but the provider was not told"))
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
}
#endif
