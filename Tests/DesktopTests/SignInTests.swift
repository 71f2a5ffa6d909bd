import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

/// `vaultctl login`, `token` and `logout` with the desktop's keyring instead of a vault.
@Suite(.tags(.desktop), .from(.usual)) struct SignInTests {
    private let desktop: PrivateDesktop
    /// A directory on the file system of the programs, which are linked into it.
    private let programs: Directory

    init() throws {
        desktop = try PrivateDesktop.withKeyring()
        programs = try Directory()
        // Answers with an expired token first, then with new ones, and records each request.
        try programs.script(
            "vaultctl-oauth",
            #"""
            IFS= read -r line; printf '%s\n' "$line" >>'\#(programs.path)/asked'
            case $line in
            *'"operation":{"revoke"'*) echo '{"revoked":{}}' ;;
            *'"operation":{"refresh"'*) echo '{"refreshed":{"_0":{"accessToken":"fake-2","refreshToken":"refresh-2","expiresIn":3600}}}' ;;
            *) echo '{"signedIn":{"_0":{"tokens":{"accessToken":"fake-1","refreshToken":"refresh-1","tokenType":"Bearer","accessTokenExpiry":1000000000},"metadata":"{\"revocation_endpoint\":\"https://id.example.com/r\"}","authentication":"none"}}}' ;;
            esac
            """#)
    }

    private func run(_ words: String...) throws -> String? {
        try desktop.run(["\(programs.path)/vaultctl"] + words + ["--backend", "secret-service"])
    }

    private var asked: [String] {
        (contents(of: FilePath("\(programs.path)/asked")) ?? "").split(separator: "\n").map(String.init)
    }

    private func login(at issuer: String = "https://id.example.com") throws -> String? {
        try run("login", "work", "--issuer", issuer, "--client-id", "fake", "--no-browser")
    }

    @Test func aSessionIsKeptRenewedAndEnded() throws {
        #expect(try run("token", "work") == nil)
        #expect(try login() == "")
        #expect(try run("profiles") == "work\tsigned-in\thttps://id.example.com\n")
        #expect(try run("token", "work") == "fake-2")
        #expect(try run("token", "work") == "fake-2")
        #expect(asked.count { $0.contains("refresh-1") && $0.contains(#""operation":{"refresh""#) } == 1)
        // The name alone signs in again, over the existing session.
        #expect(try run("login", "work", "--no-browser") == "")
        #expect(asked.last?.contains("refresh-2") == true)
        #expect(asked.last?.contains(#""operation":{"revoke""#) == true)
        #expect(try run("logout", "work") == "")
        #expect(asked.last?.contains("refresh-1") == true)
        #expect(try run("token", "work") == nil)
        #expect(try run("profiles") == "work\tsigned-out\thttps://id.example.com\n")
        #expect(try run("logout", "work", "--forget-profile") == "")
        #expect(try run("list", "--all-services") == "")
    }

    @Test func aLockedKeyringIsNotSignedOut() throws {
        #expect(try login() == "")
        try desktop.tell("lock")
        for command in ["token", "logout"] {
            let status = try desktop.run(
                "bash", "-c", "\"$0\" \"$1\" work --no-input --backend secret-service 2>/dev/null; echo $?",
                "\(programs.path)/vaultctl", command)
            #expect(status == "4\n")
        }
        try desktop.tell("unlock")
        #expect(try run("token", "work") == "fake-2")
    }

    /// One request for all, though no lock keeps them apart.
    @Test func manyAtOnceRenewOnce() throws {
        #expect(try login() == "")
        let tokens = try desktop.run(
            "bash", "-c",
            "for i in 1 2 3 4; do \"$0\" token work --backend secret-service & done; wait",
            "\(programs.path)/vaultctl")
        #expect(tokens == "fake-2fake-2fake-2fake-2")
        #expect(asked.count { $0.contains(#""operation":{"refresh""#) } == 1)
    }
}

/// A directory beside the tests, with `vaultctl` in it.
private final class Directory {
    let path: String

    init() throws {
        let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
        let built = FilePath(bundle).removingLastComponent()
        var template = Array(built.appending("sign-in-XXXXXX").string.utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
        try #require(link(built.appending("vaultctl").string, "\(path)/vaultctl") == 0)
    }

    deinit { removeTree(FilePath(path)) }

    /// Writes a script through a separate program. A file that this process had open for writing could still
    /// be open in a child of another test. The script would then fail to start (ETXTBSY).
    func script(_ name: String, _ text: String) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let process = try spawn(
            [
                "/bin/bash", "-c", "printf '#!/bin/bash\\n%s\\n' \"$1\" >\"$0\" && chmod 700 \"$0\"",
                "\(path)/\(name)", text,
            ],
            &actions, ["PATH=/usr/bin:/bin"])
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        try #require(status == 0)
    }
}
