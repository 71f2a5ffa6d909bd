#if OAuth
import TestLanes
import Testing

/// The parameters of `vaultctl login`, which the profile keeps.
@Suite(.tags(.provider), .from(.all)) struct ParameterCommandTests {
    @Test func parametersAreKeptForTheirProvider() throws {
        let home = try SignInHome(nil)
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired), refresh: SaidWorker.refreshed("fake-2")
        ).place(in: home)
        let first = try home.signIn(
            at: "https://id.example.com", "--parameter", "prompt=a=b", "--audience", "my api", "--resource",
            "https://api.example.com/", "--trusted-audience", "friend"
        ).end()
        #expect(first.status == 0, "\(first.error)")
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        #expect(try home.run("token", "work").output == "fake-2")
        let asked = home.asked("browser") + home.asked("refresh")
        try #require(asked.count == 3)
        for request in asked.prefix(2) {
            #expect(request.contains(#""prompt":"a=b""#) && request.contains(#""audience":"my api""#))
        }
        for request in asked { #expect(request.contains(#""resources":["https:\/\/api.example.com\/"]"#)) }
        for request in asked { #expect(request.contains(#""trustedAudiences":["friend"]"#)) }
        // A new value replaces a stored parameter, and an empty value removes it.
        for change in [["--parameter", "prompt=none"], ["--audience", ""], ["--resource", ""]] {
            #expect(try home.start(["login", "work", "--no-browser"] + change).end().status == 0)
        }
        let changed = home.asked("browser").suffix(3)
        #expect(changed.map { $0.contains(#""prompt":"none""#) } == [true, true, true])
        #expect(changed.map { $0.contains("my api") } == [true, false, false])
        #expect(changed.map { $0.contains("api.example.com") } == [true, true, false])
        #expect(try home.run("login", "work", "--client-id", "other", "--no-browser").status == 0)
        #expect(home.asked("browser").last?.contains("api") == false)
    }

    @Test(arguments: [
        (["--parameter", "prompt"], "NAME=VALUE"), (["--parameter", "scope=read"], "--scope or --resource"),
        (["--parameter", "=a"], "cannot be given"), (["--parameter", "Client_Id=a"], "cannot be given"),
        (["--parameter", "a=1", "--parameter", "a=2"], "once"),
        (["--parameter", "audience=1", "--audience", "2"], "once"), (["--resource", "api"], "https://"),
        (["--scope", "a\"b"], "no scope has"), (["--scope", "a b"], "more than one scope"),
        (["--client-id", "\u{e4}"], "--client-id is not visible ASCII"),
    ])
    func mistakesComeBeforeTheSignIn(_ arguments: [String], _ reason: String) throws {
        let home = try SignInHome(nil)
        try SaidWorker().place(in: home)
        let outcome = try home.start(
            ["login", "work", "--issuer", "https://id.example.com", "--client-id", "fake"] + arguments
        ).end()
        #expect(outcome.status == 64 && outcome.error.contains(reason), "\(outcome.error)")
        #expect(home.asked("browser").isEmpty)
    }
}
#endif
