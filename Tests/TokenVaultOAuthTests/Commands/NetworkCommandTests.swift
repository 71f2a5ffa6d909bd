#if OAuth
import Foundation
import TestLanes
import Testing

/// The proxy and the certificates of `vaultctl login`.
@Suite(.tags(.provider), .from(.all)) struct NetworkCommandTests {
    /// A provider behind a proxy, with a certificate of a private authority. The connection works when the
    /// provider's own name is compared.
    @Test func aProxyAndACertificateFileAreUsed() throws {
        let provider = try RunningProvider()
        let home = try SignInHome(provider)
        let server = try provider.tell("encrypt", ["name": "id.example"])
        let file = "\(home.path)/authority.pem"
        try server["certificate"].text.write(toFile: file, atomically: true, encoding: .utf8)
        let proxy = "http://127.0.0.1:\(try provider.tell("proxy")["port"].number)"
        let login = [
            "login", "work", "--issuer", "https://id.example:\(server["port"].number)/o", "--client-id",
            "fake",
        ]
        func outcome(_ more: [String], _ variables: [String: String]) throws -> RunningCommand.Outcome {
            try RunningCommand(home.program, login + more, home.environment.merging(variables) { $1 }).end()
        }
        let direct = try outcome(["--ca-file", file], [:])
        #expect(direct.status == 8 && direct.error.contains("cannot be reached"), "\(direct.error)")
        let untrusted = try outcome([], ["HTTPS_PROXY": proxy])
        #expect(
            untrusted.error.contains("certificate is not trusted") && untrusted.error.contains("--ca-file"))
        for (more, variables) in [
            (["--ca-file", file], ["https_proxy": proxy, "HTTPS_PROXY": "http://127.0.0.1:1"]),
            ([], ["HTTPS_PROXY": proxy, "SSL_CERT_FILE": file]),
        ] {
            let reached = try outcome(more, variables)
            #expect(reached.status == 8 && reached.error.contains("exactly as"), "\(reached.error)")
        }
        let excepted = try outcome(
            ["--ca-file", file], ["HTTPS_PROXY": proxy, "NO_PROXY": "a.example, .example"])
        #expect(excepted.error.contains("cannot be reached"), "\(excepted.error)")
        let wrong = try outcome([], ["HTTPS_PROXY": "ftp://proxy.example"])
        #expect(wrong.status == 64 && wrong.error.contains("proxy"), "\(wrong.error)")
        let empty = try outcome(["--ca-file", home.keyFile], ["HTTPS_PROXY": proxy])
        #expect(empty.status == 64 && empty.error.contains("trusted certificates"), "\(empty.error)")
    }

    @Test func theCertificateFileIsKept() throws {
        let home = try SignInHome(nil)
        try SaidWorker(
            signIn: SaidWorker.signedIn("fake-1", SaidWorker.expired), refresh: SaidWorker.refreshed("fake-2")
        ).place(in: home)
        #expect(try home.signIn(at: "https://id.example.com", "--ca-file", home.keyFile).end().status == 0)
        #expect(try home.run("token", "work").output == "fake-2")
        #expect(try home.run("login", "work", "--no-browser").status == 0)
        #expect(try home.run("login", "work", "--no-browser", "--ca-file", "").status == 0)
        let path = home.keyFile.replacing("/", with: #"\/"#)
        let asked = (home.asked("browser") + home.asked("refresh")).map {
            $0.contains(#""certificateFile":"\#(path)""#)
        }
        #expect(asked == [true, true, false, true])
        let missing = try home.run("login", "work", "--no-browser", "--ca-file", "\(home.path)/none")
        #expect(missing.status == 64 && missing.error.contains("readable file"), "\(missing.error)")
    }
}
#endif
