import Glibc
import Testing

/// A home directory of its own, and `vaultctl` run in it with a key file. A passphrase would cost the better
/// part of a second each time.
final class Sandbox {
    /// The home directory.
    let home: String
    /// What the program finds in its environment.
    var environment: [String: String]

    init() throws {
        var path = Array("/tmp/vaultctl-home-XXXXXX".utf8CString)
        home = try #require(mkdtemp(&path).map { String(cString: $0) })
        environment = [
            "HOME": home, "PATH": "/usr/bin:/bin", "VAULTCTL_KEY_FILE": "\(home)/vault.key",
        ]
    }

    deinit {
        _ = try? Child.run(program: "/bin/rm", [Array("-rf".utf8), Array(home.utf8)], environment: [:])
    }

    /// One with a vault that the key file opens.
    static func withVault() throws -> Sandbox {
        let sandbox = try Sandbox()
        let made = try sandbox.run("init")
        try #require(made.status == 0, "\(made.error)")
        return sandbox
    }

    /// Where the vault is by default.
    var vault: String { "\(home)/.local/share/tokenvault/default.vault" }

    /// Runs `vaultctl`.
    func run(
        _ arguments: String..., input: String? = nil, bytes: [UInt8]? = nil, stdin: Child.Input? = nil,
        output: Child.Output = .captured, without variable: String? = nil, with extra: [String: String] = [:]
    ) throws -> Child.Outcome {
        var environment = environment.merging(extra) { $1 }
        if let variable { environment[variable] = nil }
        return try Child.run(
            arguments.map { Array($0.utf8) }, environment: environment,
            input: stdin ?? .bytes(bytes ?? Array((input ?? "").utf8)), output: output)
    }

    /// Runs `vaultctl` with these words.
    func run(arguments: [String]) throws -> Child.Outcome {
        try Child.run(arguments.map { Array($0.utf8) }, environment: environment, input: .bytes([]))
    }

    /// Runs a shell script in the home directory, where `$V` is `vaultctl`.
    func shell(_ script: String) throws -> Child.Outcome {
        var environment = environment
        environment["V"] = Child.program
        let inHome = "cd \"$HOME\" || exit\n" + script
        return try Child.run(
            program: "/bin/bash", [Array("-c".utf8), Array(inHome.utf8)], environment: environment)
    }

    /// Writes a file in the home directory and gives its path.
    func file(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
        let path = "\(home)/\(name)"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try #require(write(descriptor, text, text.utf8.count) == text.utf8.count)
        fchmod(descriptor, mode)
        return path
    }
}

/// Expects a failure told in one line that repeats none of `values`.
func expectOneLine(
    _ outcome: Child.Outcome, status: Int32, hiding values: [String] = [],
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(outcome.status == status, "\(outcome.error)", sourceLocation: sourceLocation)
    #expect(outcome.output.isEmpty, sourceLocation: sourceLocation)
    let lines = outcome.error.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count == 2 && lines.last == "", "\(outcome.error)", sourceLocation: sourceLocation)
    // The line says what happened and what to do.
    #expect(outcome.error.hasPrefix("vaultctl: "), "\(outcome.error)", sourceLocation: sourceLocation)
    #expect(
        outcome.error.split(separator: ": ").count >= 3, "\(outcome.error)", sourceLocation: sourceLocation)
    for value in values {
        #expect(!outcome.error.contains(value), "\(outcome.error)", sourceLocation: sourceLocation)
    }
}
