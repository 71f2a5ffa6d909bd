#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

/// Bound tokens through `vaultctl`.
@Suite(.tags(.provider), .from(.all)) struct DPoPCommandTests {
    /// Returns a provider that requires a proof and a nonce for each token.
    private static func server() async throws -> ScriptedServer {
        try await ScriptedServer { asked in
            let form = asked.form
            guard let proof = asked.proof, proof.tokenHash == nil else {
                return .json(#"{"error":"invalid_dpop_proof"}"#, status: 400)
            }
            guard proof.nonce == "n-1" else {
                return .json(
                    #"{"error":"use_dpop_nonce"}"#, status: 400, headers: [("DPoP-Nonce", "n-1")])
            }
            let scope = form["grant_type"] == "client_credentials" ? "" : #","scope":"exchanged""#
            return .json(
                #"{"access_token":"fake-\#(proof.identifier)","token_type":"DPoP","expires_in":3600\#(scope)}"#
            )
        }
    }

    private static func signIn(
        _ home: SignInHome, _ server: ScriptedServer, _ more: String...
    ) throws -> RunningCommand.Outcome {
        let secret = "\(home.path)/secret"
        try "not-a-real-secret\n".write(toFile: secret, atomically: true, encoding: .utf8)
        try #require(chmod(secret, 0o600) == 0)
        return try home.start(
            [
                "login", "work", "--issuer", server.origin, "--client-id", "fake", "--client-credentials",
                "--token-endpoint", "\(server.origin)/token", "--client-secret-file", secret,
            ] + more
        ).end()
    }

    @Test func theHeadersOfARequestArePrinted() async throws {
        let server = try await Self.server()
        let home = try SignInHome(nil)
        let login = try Self.signIn(home, server, "--dpop")
        #expect(login.status == 0, "\(login.error)")
        let token = try home.run("token", "work")
        #expect(token.status == 0 && token.error.contains("--headers-for"), "\(token.error)")
        let url = "https://api.example.com/items?page=1"
        let outcome = try home.run("token", "work", "--headers-for", url, "--method", "POST", "--nonce", "n")
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        let lines = outcome.output.split(separator: "\n").map(String.init)
        try #require(lines.count == 2)
        #expect(lines[0] == "Authorization: DPoP \(token.output)")
        let proof = try #require(ReadProof(String(lines[1].dropFirst("DPoP: ".count))))
        #expect(proof.method == "POST" && proof.url == "https://api.example.com/items")
        #expect(proof.nonce == "n" && proof.tokenHash == ReadProof.hash(token.output))
        #expect(abs(Double(proof.time) - Date().timeIntervalSince1970) < 60)
        let sent = server.asked.compactMap { $0.proof }
        #expect(Set(sent.map(\.thumbprint)) == [proof.thumbprint])
        let json = try JSONDecoder().decode(
            [String: String?].self,
            from: Data(try home.run("token", "work", "--json", "--headers-for", url).output.utf8))
        #expect(json["tokenType"] == "DPoP" && json["accessToken"] == token.output)
        #expect(ReadProof(json["proof"] ?? nil)?.tokenHash == proof.tokenHash)
        // A nonce may begin with a dash.
        let dashed = try home.run("token", "work", "--headers-for", url, "--nonce", "-n")
        #expect(dashed.status == 0, "\(dashed.error)")
        // A refresh and an exchange keep the key.
        #expect(try home.run("token", "work", "--renew").status == 0)
        let exchanged = try home.run("token", "work", "--audience", "billing", "--headers-for", url)
        #expect(exchanged.status == 0, "\(exchanged.error)")
        let all = server.asked.compactMap { $0.proof }
        // The refresh and the exchange each needed a nonce.
        #expect(Set(all.map(\.thumbprint)) == [proof.thumbprint] && all.count == sent.count + 4)
        let parts = exchanged.output.split(separator: "\n").map(String.init)
        let other = try #require(ReadProof(parts.last.map { String($0.dropFirst("DPoP: ".count)) }))
        #expect(other.thumbprint == proof.thumbprint)
        #expect(other.tokenHash == ReadProof.hash(String(parts[0].dropFirst("Authorization: DPoP ".count))))
    }

    /// A bearer token has no proof.
    @Test func aBearerTokenHasOneHeader() async throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id.example.com").end().status == 0)
        let outcome = try home.run("token", "work", "--headers-for", "https://api.example.com/")
        #expect(outcome.output == "Authorization: Bearer fake-1\n" && outcome.error.isEmpty)
    }

    /// The profile keeps the choice. Another client begins without it.
    @Test func theChoiceIsKept() throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        #expect(try home.signIn(at: "https://id.example.com", "--dpop").end().status == 0)
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        #expect(home.asked("browser").count { $0.contains(#""usesDPoP":true"#) } == 2)
        #expect(try home.run("login", "work", "--no-browser", "--no-dpop").status == 0)
        #expect(try #require(home.asked("browser").last).contains("usesDPoP") == false)
        #expect(try home.run("login", "work", "--no-browser", "--dpop").status == 0)
        #expect(try home.run("login", "work", "--no-browser", "--client-id", "other").status == 0)
        #expect(try #require(home.asked("browser").last).contains("usesDPoP") == false)
    }

    /// A worker that cannot sign the proof.
    @Test func aProofThatIsMissingIsReported() async throws {
        let server = try await Self.server()
        let home = try SignInHome(nil)
        #expect(try Self.signIn(home, server, "--dpop").status == 0)
        let headers = ["token", "work", "--headers-for", "https://api.example.com/"]
        try home.place(.script("IFS= read -r line; exit 9"))
        let ended = try home.start(headers).end()
        #expect(ended.status == 8 && ended.output.isEmpty, "\(ended.error)")
        try home.place(.script("exec sleep 1000"))
        let late = try home.start(headers + ["--timeout", "1"]).end()
        #expect(late.status == 10 && late.error.contains("did not sign the proof in time"), "\(late.error)")
        try home.place(.missing)
        #expect(try home.start(headers).end().status == 8)
    }

    /// Tokens of the type that needs a key, without one: nothing is sent or printed.
    @Test func aSessionWithoutItsKeyIsReported() throws {
        let home = try SignInHome(nil)
        var worker = SaidWorker()
        worker.signIn = SaidWorker.signedIn("fake-1").replacing("Bearer", with: "DPoP")
        try worker.place(in: home)
        #expect(try home.signIn(at: "https://id.example.com", "--dpop").end().status == 0)
        let outcome = try home.run("token", "work")
        #expect(outcome.status == 1 && outcome.output.isEmpty)
        #expect(outcome.error.contains("the session's key cannot be used"), "\(outcome.error)")
    }

    @Test func aProviderThatDoesNotBindTokensIsRejected() async throws {
        let server = try await ScriptedServer(
            always: .json(#"{"access_token":"fake-token","token_type":"Bearer"}"#))
        let home = try SignInHome(nil)
        let login = try Self.signIn(home, server, "--dpop")
        #expect(login.status == 8 && login.error.contains("does not offer DPoP"), "\(login.error)")
        #expect(!login.error.contains("fake-token"))
        #expect(try home.run("token", "work").status == 3)
    }

    /// At the sign-in, and at a refresh.
    @Test func aRefusedProofPointsToTheClock() async throws {
        let server = try await ScriptedServer(
            always: .json(#"{"error":"invalid_dpop_proof"}"#, status: 400))
        let home = try SignInHome(nil)
        let login = try Self.signIn(home, server, "--dpop")
        #expect(login.error.contains("check the clock of this machine"), "\(login.error)")
        let said = try SignInHome(nil)
        var worker = SaidWorker()
        worker.signIn = SaidWorker.signedIn("fake-1", SaidWorker.expired)
        worker.refresh = #"echo '{"failed":{"_0":{"kind":"refused","detail":"invalid_dpop_proof"}}}'"#
        try worker.place(in: said)
        #expect(try said.signIn(at: "https://id.example.com").end().status == 0)
        let refresh = try said.run("token", "work")
        #expect(refresh.error.contains("check the clock of this machine"), "\(refresh.error)")
    }

    @Test(arguments: [
        (["--headers-for", "api.example.com"], "not a usable https address"),
        (["--headers-for", "http://api.example.com/"], "not a usable https address"),
        (["--headers-for", "https://api.example.com/a b"], "not a usable https address"),
        (["--headers-for", "https://a.example/" + String(repeating: "a", count: 8_192)], "not a usable"),
        (["--method", "GET"], "need --headers-for"),
        (["--nonce", "n"], "need --headers-for"),
        (["--headers-for", "https://a.example/", "--method", "G T"], "not an HTTP method"),
        (["--headers-for", "https://a.example/", "--nonce", "a b"], "not a nonce"),
        (["--headers-for", "https://a.example/", "--id"], "--id excludes"),
    ])
    func usageErrorsPrintNoToken(_ arguments: [String], _ reason: String) throws {
        let home = try SignInHome(nil)
        let outcome = try home.start(["token", "work"] + arguments).end()
        #expect(outcome.status == 64 && outcome.error.contains(reason), "\(outcome.error)")
        #expect(outcome.output.isEmpty)
    }
}
#endif
