import TestLanes
import Testing

/// The address at which a browser on another machine ended, pasted while `vaultctl login` waits.
@Suite(.tags(.programs), .from(.usual)) struct PastedAddressTests {
    /// A vault, and a `vaultctl` whose worker takes the line with the right code.
    private static func home() throws -> Sandbox {
        let sandbox = try Sandbox.withVault()
        let made = try sandbox.shell(
            #"""
            mkdir bin && { ln "$V" bin/vaultctl 2>/dev/null || cp "$V" bin/vaultctl; } && cat >bin/vaultctl-oauth <<'END'
            #!/bin/bash
            IFS= read -r line
            echo '{"open":{"address":"https://id.example.com/authorize"}}'
            while IFS= read -r line; do
                case $line in
                *code=right*)
                    echo '{"signedIn":{"_0":{"tokens":{"accessToken":"fake-1","tokenType":"Bearer"},"metadata":"{}","authentication":"none"}}}'
                    exit ;;
                *) echo '{"wrongAnswer":{}}' ;;
                esac
            done
            touch "${0%/*}/ended"
            END
            chmod 700 bin/vaultctl-oauth
            """#)
        try #require(made.status == 0, "\(made.error)")
        return sandbox
    }

    private static func login(_ sandbox: Sandbox, _ more: String...) throws -> PseudoTerminal {
        try PseudoTerminal(
            sandbox, program: "\(sandbox.home)/bin/vaultctl",
            [
                "login", "work", "--issuer", "https://id.example.com", "--client-id", "fake", "--no-browser",
                "--key-file", "\(sandbox.home)/vault.key",
            ] + more)
    }

    @Test func theRightAddressSignsIn() throws {
        let sandbox = try Self.home()
        let terminal = try Self.login(sandbox)
        try terminal.expect("paste the address of the page")
        try terminal.type("http://127.0.0.1:1/issuer/id.example.com?code=wrong&state=fake\r")
        try terminal.expect("not the answer to this sign-in")
        try terminal.type("\r")
        // The user can paste any number of times.
        for number in 0..<12 {
            try terminal.type("wrong \(number)\r")
            try terminal.expect("not the answer to this sign-in")
        }
        try terminal.type("http://127.0.0.1:1/issuer/id.example.com?code=right&state=fake\r")
        try terminal.expect("Signed in.")
        #expect(try terminal.end() == 0)
        #expect(try sandbox.run("token", "work").text == "fake-1")
    }

    /// The terminal gives a program 4,095 bytes of a line: a code would be cut, and used up.
    @Test func aCutAddressIsNotSent() throws {
        let sandbox = try Self.home()
        let terminal = try Self.login(sandbox)
        try terminal.expect("paste the address of the page")
        let padding = String(repeating: "x", count: 1_000)
        try terminal.type("http://127.0.0.1:1/?code=right")
        for _ in 0..<5 { try terminal.type(padding) }
        try terminal.type("\r")
        try terminal.expect("the terminal cut the pasted line")
        try terminal.type("http://127.0.0.1:1/?code=right&state=fake\r")
        try terminal.expect("Signed in.")
        #expect(try terminal.end() == 0)
    }

    /// A signal ends the sign-in and its worker.
    @Test func anInterruptEndsTheWait() throws {
        let sandbox = try Self.home()
        let terminal = try Self.login(sandbox)
        try terminal.expect("paste the address of the page")
        try terminal.type("\u{3}")
        #expect(try terminal.end() == 130)
        #expect(try sandbox.shell("[[ -e bin/ended ]]").status == 0)
    }

    @Test func noInputReadsNothing() throws {
        let sandbox = try Self.home()
        let terminal = try Self.login(sandbox, "--no-input", "--timeout", "3")
        try terminal.expect("waiting for the sign-in")
        try terminal.type("http://127.0.0.1:1/issuer/id.example.com?code=right&state=fake\r")
        let before = try terminal.expect("vaultctl-oauth did not answer in time")
        #expect(!before.contains("paste the address"))
        #expect(try terminal.end() == 10)
    }
}
