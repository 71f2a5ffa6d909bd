#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
@testable import TokenVaultAuth

/// A session's tokens go to the provider that gave them, and to no other.
@Suite(.tags(.provider), .from(.all)) struct SessionSourceTests {
    private static let origins = ["https://id-a.example.com", "https://id-b.example.com"]

    /// Signs in at one of the two, and says a token that is called after it and is over already.
    private static let either = #"""
        case $line in *id-a.example.com*) name=a;; *) name=b;; esac
        echo '{"open":{"address":"https://127.0.0.1/"}}'
        flock -s "$GATE" true
        echo '{"signedIn":{"_0":{"tokens":{"accessToken":"fake-'$name'","refreshToken":"refresh-of-'$name'",'\#
        '"tokenType":"Bearer","accessTokenExpiry":1000000000},"metadata":"{\"revocation_endpoint\":\"https://127.0.0.1/\"}",'\#
        '"authentication":"none"}}}'
        """#

    /// One of them wins, with its profile and its session.
    @Test func oneOfTwoSignInsWinsWhole() throws {
        let home = try SignInHome(nil)
        let gate = try Gate(holding: "\(home.path)/gate")
        let fails = #"echo '{"failed":{"_0":{"kind":"notSent"}}}'"#
        try SaidWorker(
            signIn: Self.either.replacing("$GATE", with: gate.path), refresh: fails, revoke: fails
        ).place(in: home)
        let names = (1...6).map { "profile-\($0)" }
        let logins = try names.flatMap { name in
            try Self.origins.map { issuer in
                try home.start([
                    "login", name, "--issuer", issuer, "--client-id", "fake", "--no-browser",
                ])
            }
        }
        for login in logins { _ = try login.expect(after: "open this address", until: "\n") }
        gate.open()
        for login in logins {
            let outcome = try login.end()
            #expect(outcome.status == 0, "\(outcome.error)")
        }
        for name in names {
            // No provider can be reached here. The test checks which requests went where.
            #expect(try home.run("token", name).status == 8)
        }
        #expect(home.asked("refresh").count >= names.count)
        for request in home.asked("refresh") + home.asked("revoke") {
            #expect(request.contains("id-a.example.com") == request.contains("refresh-of-a"), "\(request)")
            #expect(request.contains("id-a.example.com") != request.contains("refresh-of-b"), "\(request)")
        }
    }

    /// Whatever puts them side by side: the token stays here.
    @Test(arguments: [["token"], ["token", "--renew"], ["logout"]])
    func anotherProfilesProviderGetsNothing(_ command: [String]) async throws {
        let home = try SignInHome(nil)
        let fake = SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired),
            refresh: SaidWorker.refreshed("fake-2"))
        try fake.place(in: home)
        for (name, issuer) in zip(["work", "other"], Self.origins) {
            let login = ["login", name, "--issuer", issuer, "--client-id", "fake", "--no-browser"]
            #expect(try home.start(login).end().status == 0)
        }
        try await home.withStorage { storage in
            let other = try #require(try await storage.secret(for: "profile/other"))
            try await storage.commit([.store(other, for: "profile/work")])
        }
        let outcome = try home.start([command[0], "work"] + command.dropFirst()).end()
        #expect(outcome.status == (command[0] == "token" ? 9 : 8), "\(outcome.error)")
        #expect(outcome.output.isEmpty && !outcome.error.contains("fake-1"), "\(outcome.error)")
        #expect(outcome.error.contains("provider"))
        #expect(home.asked("refresh").isEmpty && home.asked("revoke").isEmpty)
        if command == ["logout"] {
            #expect(outcome.error.contains("signed out here"))
            #expect(try home.run("token", "work").status == 3)
        } else {
            #expect(outcome.error.contains("\"vaultctl login work\""), "\(outcome.error)")
        }
    }

    /// A session of an earlier version does not name its provider. The command prints its token while the
    /// token is good, and sends it to no server.
    @Test func aSessionOfUnknownSourceIsSentToNobody() async throws {
        let home = try SignInHome(nil)
        try SaidWorker(refresh: SaidWorker.refreshed("fake-2")).place(in: home)
        #expect(try home.signIn(at: Self.origins[0]).end().status == 0)
        try await home.withManager { manager in
            try await manager.updateTokens(
                TokenInfo(
                    accessToken: "fake-3", refreshToken: "fake-refresh",
                    accessTokenExpiry: Date().addingTimeInterval(600)))
        }
        let good = try home.run("token", "work", "--min-valid", "2h")
        #expect(good.status == 0 && good.output == "fake-3", "\(good.error)")
        let sent = try home.run("token", "work", "--renew")
        #expect(sent.status == 9 && sent.output.isEmpty, "\(sent.error)")
        // A good token is not sent for an exchange either.
        let exchanged = try home.run("token", "work", "--audience", "billing")
        #expect(exchanged.status == 9 && exchanged.output.isEmpty, "\(exchanged.error)")
        #expect(home.asked("refresh").isEmpty && home.asked("exchange").isEmpty)
    }

    /// What cannot be used is not stored, and neither is the profile; what came with it is revoked.
    @Test(arguments: [
        (#"{"accessToken":"","tokenType":"Bearer"}"#, "the access token"),
        (#"{"accessToken":"fake\u0007","tokenType":"Bearer"}"#, "the access token"),
        (#"{"accessToken":"fake","refreshToken":"a\nb","tokenType":"Bearer"}"#, "the refresh token"),
        (#"{"accessToken":"fake","tokenType":"Bea\u0007rer"}"#, "the token's type"),
        (#"{"accessToken":"fake","tokenType":""}"#, "the token's type"),
        (#"{"accessToken":"fake","tokenType":"Bearer","scope":"a\u001b[2Jb"}"#, "the scope"),
    ])
    func whatIsNoTokenIsNotStored(_ tokens: String, _ what: String) throws {
        let home = try SignInHome(nil)
        let answer = #"{"signedIn":{"_0":{"tokens":\#(tokens),"metadata":"\#(SaidWorker.metadata)","#
        try SaidWorker(signIn: #"echo '\#(answer)"authentication":"none"}}}'"#).place(in: home)
        let outcome = try home.signIn(at: Self.origins[0]).end()
        #expect(outcome.status == 1 && outcome.error.contains("\(what) from"), "\(outcome.error)")
        #expect(home.asked("revoke").count == 1)
        let profiles = try home.run("profiles")
        #expect(profiles.status == 0 && profiles.output.isEmpty)
        #expect(try home.run("login", "work").status == 3)
    }
}
#endif
