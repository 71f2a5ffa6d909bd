#if OAuth
import Foundation
import Glibc
import SystemPackage
import Testing
import TokenVault
@testable import TokenVaultAuth

/// A home with a vault that a key file opens, and in it a `vaultctl` with a `vaultctl-oauth` of the test's own choice.
final class SignInHome {
    /// What lies beside `vaultctl` as `vaultctl-oauth`.
    enum Worker {
        case real
        case missing
        /// A shell script; `$REAL` is the real one.
        case script(String)
    }

    let path: String
    let provider: RunningProvider?
    private let built: FilePath

    var program: String { "\(path)/bin/vaultctl" }
    private var worker: String { "\(path)/bin/vaultctl-oauth" }
    var keyFile: String { "\(path)/vault.key" }
    var vault: FilePath { FilePath(path).appending("data/tokenvault/default.vault") }

    /// A home, whose browser is that of alice.
    init(_ provider: RunningProvider?, worker: Worker = .real) throws {
        self.provider = provider
        // The programs are beside the tests, whichever program loads the tests.
        let tests =
            try CommandLine.arguments.first { $0.hasSuffix(".xctest") }
            ?? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        // An absolute path: the program ignores a relative XDG directory, and would create its vault in the
        // user's own.
        built = FilePath(URL(fileURLWithPath: tests).path).removingLastComponent()
        // On the file system of the programs, because they are hard-linked into the directory.
        var template = Array(built.appending("sign-in-XXXXXX").string.utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
        for directory in ["bin", "run"] { try #require(mkdir("\(path)/\(directory)", 0o700) == 0) }
        for name in ["vaultctl", "vaultctl-agent"] {
            try #require(link(built.appending(name).string, "\(path)/bin/\(name)") == 0)
        }
        try place(worker)
        try script("browser", browser)
        let made = try run("init")
        try #require(made.status == 0, "\(made.error)")
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private var browser: String {
        guard let provider else { return "exit 1" }
        let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        let user = provider.facts["users"][0]
        let python = root.removingLastComponent().appending(".build-oauth-server/bin/python")
        let browser = root.appending("Support/OAuth/browser.py")
        return "exec '\(python)' -B '\(browser)' '\(user["name"].text)' '\(user["password"].text)' \"$1\""
    }

    /// Puts another `vaultctl-oauth` there.
    func place(_ worker: Worker) throws {
        unlink(self.worker)
        switch worker {
        case .real: try #require(link(built.appending("vaultctl-oauth").string, self.worker) == 0)
        case .missing: break
        case .script(let text):
            try script("vaultctl-oauth", "REAL='\(built.appending("vaultctl-oauth"))'\n\(text)")
        }
    }

    @discardableResult
    func script(_ name: String, _ text: String) throws -> String {
        let file = "\(path)/bin/\(name)"
        // Another program writes the file. With a descriptor of this process, a child of another test could
        // still hold it for writing, and executing the file would fail (ETXTBSY).
        let written = try RunningCommand(
            "/bin/bash", ["-c", "printf '#!/bin/bash\\n%s\\n' \"$TEXT\" >\"$FILE\" && chmod 700 \"$FILE\""],
            ["TEXT": text, "FILE": file, "PATH": "/usr/bin:/bin"]
        ).end()
        try #require(written.status == 0, "\(written.error)")
        return file
    }

    func contents(_ name: String) -> String? {
        try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)
    }

    var environment: [String: String] {
        [
            "HOME": path, "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": "\(path)/run",
            "XDG_DATA_HOME": "\(path)/data",
            "XDG_STATE_HOME": "\(path)/state", "VAULTCTL_KEY_FILE": keyFile, "BROWSER": "\(path)/bin/browser",
        ]
    }

    /// Runs `vaultctl` to its end.
    func run(_ arguments: String..., without variable: String? = nil) throws -> RunningCommand.Outcome {
        try start(arguments, without: variable).end()
    }

    func start(_ arguments: [String], without variable: String? = nil) throws -> RunningCommand {
        var environment = environment
        if let variable { environment[variable] = nil }
        return try RunningCommand(program, arguments, environment)
    }

    /// Signs alice in with the browser, as the profile `work`.
    func signIn(_ more: String...) throws {
        let provider = try #require(provider)
        let outcome = try start(
            [
                "login", "work", "--issuer", provider.issuer, "--client-id", provider.clientID("browser"),
                "--scope",
                "openid", "--scope", "email", "--scope", "read",
            ] + more
        ).end()
        try #require(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output.isEmpty)
    }

    /// When the vault's file was written last.
    func vaultChanged() throws -> Date? {
        try FileManager.default.attributesOfItem(atPath: vault.string)[.modificationDate] as? Date
    }

    /// What `vaultctl login` keeps, as another program has it.
    @discardableResult
    func withStorage<Value>(_ body: (any TokenStorage) async throws -> Value) async throws -> Value {
        let vault = try FileVault.open(
            at: vault,
            configuration: FileVaultConfiguration(stateDirectory: FilePath("\(path)/state/tokenvault")))
        defer { vault.close() }
        try await vault.unlock(with: .keyFile(at: FilePath(keyFile)))
        return try await body(vault.storage(service: "vaultctl.login"))
    }

    /// The manager of the profile's session, as another program has it; it asks no provider.
    func withManager<Value>(_ body: (TokenManager) async throws -> Value) async throws -> Value {
        try await withStorage { storage in
            try await body(
                TokenManager(storage: storage, account: "work") { _ in throw RefreshFailure(.notSent) })
        }
    }

    /// Has the access token be over since a second, as far as is known here. What was stored.
    @discardableResult
    func expire() async throws -> TokenInfo {
        try await change { $0.tokens.accessTokenExpiry = Date().addingTimeInterval(-1) }
    }

    /// Makes the access token due where an hour is asked for, and good for longer than any test takes. Half
    /// an hour is left of the two and a half that it had.
    func age() async throws {
        _ = try await change { record in
            record.obtained = Date().addingTimeInterval(-7_200).timeIntervalSince1970
            record.tokens.accessTokenExpiry = Date().addingTimeInterval(1_800)
        }
    }

    private func change(_ change: (inout SessionRecord) -> Void) async throws -> TokenInfo {
        try await withStorage { storage in
            let key = TokenKey("auth/session/work")
            var record = try #require(try await storage.secret(for: key)).decode(SessionRecord.self)
            change(&record)
            try await storage.commit([.store(Secret(encoding: record), for: key)])
            return record.tokens
        }
    }
}
#endif
