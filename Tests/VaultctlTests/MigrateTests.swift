import Glibc
import ProgramSupport
import TestLanes
import Testing
import TokenVault

@testable import vaultctl

/// Moving items with the program: real vaults, real processes.
@Suite(.tags(.programs), .from(.usual)) struct MigrateTests {
    private let sandbox: Sandbox
    private var old: String { "\(sandbox.home)/old.vault" }

    init() throws {
        sandbox = try Sandbox.withVault()
        #expect(try sandbox.run("init", "--vault", "\(sandbox.home)/old.vault").status == 0)
        for key in ["access", "refresh"] {
            _ = try sandbox.run("store", key, "--vault", old, "--label", "of \(key)", input: "fake-\(key)")
        }
        _ = try sandbox.run("store", "other", "--vault", old, "--service", "s", input: "fake-other")
    }

    private func migrate(_ arguments: String..., from: String? = nil) throws -> Child.Outcome {
        let words = ["migrate", "--from-vault", from ?? old, "--to", "file"] + arguments
        return try Child.run(words.map { Array($0.utf8) }, environment: sandbox.environment)
    }

    @Test func copiesThenMoves() throws {
        let copied = try migrate()
        #expect(copied.status == 0 && copied.error.isEmpty, "\(copied.error)")
        #expect(copied.text == "2 found, 2 copied, 0 already there, 2 verified, 0 deleted\n")
        #expect(try sandbox.run("retrieve", "access").text == "fake-access")
        #expect(try sandbox.run("info", "refresh").text.contains("of refresh"))
        #expect(try sandbox.run("list", "--vault", old).text == "access\nrefresh\n")
        let moved = try migrate("--all-services", "--delete", "--json")
        #expect(
            moved.text
                == #"{"found":3,"copied":1,"alreadyThere":2,"verified":3,"deleted":3,"deletedMeanwhile":0,"#
                + #""absent":0,"hidden":0,"keptForOthers":0,"passedOver":0,"left":[]}"# + "\n")
        #expect(try sandbox.run("list", "--vault", old, "--all-services").text.isEmpty)
        #expect(try sandbox.run("retrieve", "other", "--service", "s").text == "fake-other")
        #expect(try migrate("--all-services", "--delete").text.hasPrefix("0 found"))
    }

    @Test func aConflictIsFailedSkippedOrReplaced() throws {
        _ = try sandbox.run("store", "refresh", input: "fake-newer")
        let failed = try migrate("--delete")
        #expect(failed.status == 9)
        #expect(failed.error.hasPrefix("vaultctl: 1 item would replace another item: "))
        #expect(failed.text.hasPrefix("default\trefresh\tthe destination has another item\n"))
        #expect(try sandbox.run("list").text == "refresh\n")
        let json = try migrate("--delete", "--json")
        #expect(json.status == 9)
        #expect(
            json.text.contains(
                #""left":[{"service":"default","key":"refresh","reason":"conflict"}],"stopped":"conflict","stoppedAt":"destination"}"#
            ))
        let skipped = try migrate("--delete", "--on-conflict", "skip")
        #expect(skipped.status == 0 && skipped.text.hasSuffix("1 deleted, 1 in conflict\n"))
        #expect(try sandbox.run("retrieve", "refresh").text == "fake-newer")
        #expect(try sandbox.run("list", "--vault", old).text == "refresh\n")
        #expect(try migrate("--delete", "--on-conflict", "replace").status == 0)
        #expect(try sandbox.run("retrieve", "refresh").text == "fake-refresh")
        #expect(try sandbox.run("list", "--vault", old).text.isEmpty)
    }

    /// A row has the names as `list` does: what turns the direction of writing, or is not shown, is a question mark.
    @Test func aRowControlsNothing() throws {
        let key = "a\u{202e}b\u{200b}c\u{1b}d"
        for vault in [old, sandbox.vault] {
            let stored = try sandbox.run(
                "store", key, "--vault", vault, "--service", "s\u{2066}", input: "fake of \(vault)")
            try #require(stored.status == 0, "\(stored.error)")
        }
        let failed = try migrate("--service", "s\u{2066}")
        #expect(
            failed.text.hasPrefix("s?\ta?b?c\\u{1b}d\tthe destination has another item"),
            "\(failed.text) \(failed.error)")
    }

    @Test func whatCannotBeKeptStaysUnlessItIsMapped() throws {
        // Only a passphrase gives the policy that needs one, and the destination has no passphrase.
        let words = try sandbox.file("words", "fake words\n")
        let strict = "\(sandbox.home)/strict.vault"
        let policy = "when-passcode-set-this-device-only"
        #expect(try sandbox.run("init", "--vault", strict, "--passphrase-file", words).status == 0)
        let stored = try sandbox.run(
            "store", "k", "--vault", strict, "--passphrase-file", words, "--policy", policy,
            input: "fake-strict")
        try #require(stored.status == 0, "\(stored.error)")
        let key = "\(sandbox.home)/vault.key"
        func move(_ arguments: String...) throws -> Child.Outcome {
            let words = [
                "migrate", "--from-vault", strict, "--passphrase-file", words, "--to", "file",
                "--to-key-file", key, "--delete",
            ]
            return try Child.run((words + arguments).map { Array($0.utf8) }, environment: sandbox.environment)
        }
        let left = try move()
        #expect(left.status == 1 && left.error.contains("--map-policy"))
        #expect(left.text.hasPrefix("default\tk\tthe destination does not support its policy\n"))
        expectOneLine(try sandbox.run("retrieve", "k"), status: 3)
        let mapped = try move("--map-policy", "\(policy)=when-unlocked-this-device-only")
        #expect(mapped.status == 0, "\(mapped.error)")
        #expect(try sandbox.run("retrieve", "k").text == "fake-strict")
    }

    @Test func eachStoresTroubleIsNamed() throws {
        let none = "\(sandbox.home)/none.vault"
        expectOneLine(try migrate(from: none), status: 8)
        let wrong = try sandbox.file("wrong", String(repeating: "0", count: 64))
        expectOneLine(try migrate("--to-key-file", wrong), status: 5, hiding: [wrong])
        expectOneLine(try migrate("--key-file", wrong), status: 5)
        expectOneLine(
            try sandbox.run("migrate", "--from-vault", old, "--to", "file", without: "VAULTCTL_KEY_FILE"),
            status: 4)
        expectOneLine(try migrate(from: sandbox.vault), status: 64)
        // There is no desktop here: the command finds nothing, and gives the reason.
        let desktop = try sandbox.run("migrate", "--from", "secret-service", "--to", "file")
        #expect(desktop.status == 8 && desktop.error.hasPrefix("vaultctl: "), "\(desktop.error)")
        #expect(desktop.text.isEmpty)
        // With another path to the same vault, the command deletes nothing and reports the reason.
        try #require(symlink(sandbox.home, "\(sandbox.home)/again") == 0)
        let same = try sandbox.run(
            "migrate", "--from-vault", old, "--to-vault", "\(sandbox.home)/again/old.vault", "--delete")
        #expect(same.status == 64 && same.error.contains("the same"), "\(same.error)")
        #expect(try sandbox.run("list", "--vault", old).text == "access\nrefresh\n")
    }

    @Test func anotherDevicesItemsAreCounted() throws {
        let elsewhere = try sandbox.run(
            "migrate", "--from-vault", old, "--to", "memory", "--state-dir", "\(sandbox.home)/elsewhere")
        #expect(elsewhere.status == 6 && elsewhere.text.hasSuffix("2 not readable\n"), "\(elsewhere.text)")
        #expect(elsewhere.error.contains("forgets everything"))
    }

    @Test func aPassphraseIsReadOnceFromADescriptorForBoth() throws {
        let words = try sandbox.file("words", "fake words\n")
        let (one, two) = ("\(sandbox.home)/one.vault", "\(sandbox.home)/two.vault")
        for vault in [one, two] {
            #expect(try sandbox.run("init", "--vault", vault, "--passphrase-file", words).status == 0)
        }
        _ = try sandbox.run("store", "k", "--vault", one, "--passphrase-file", words, input: "fake")
        let moved = try sandbox.run(
            "migrate", "--from-vault", one, "--to-vault", two, "--passphrase-fd", "0", input: "fake words\n")
        #expect(moved.status == 0 && moved.text.hasPrefix("1 found, 1 copied"), "\(moved.error)")
    }

    @Test func aPersonSeesHowFarItIsAndWhichIsAskedFor() throws {
        let words = try sandbox.file("words", "fake words\n")
        let vault = "\(sandbox.home)/words.vault"
        #expect(try sandbox.run("init", "--vault", vault, "--passphrase-file", words).status == 0)
        _ = try sandbox.run("store", "k", "--vault", vault, "--passphrase-file", words, input: "fake")
        let terminal = try PseudoTerminal(
            sandbox,
            [
                "migrate", "--from-vault", vault, "--to", "file", "--to-key-file",
                "\(sandbox.home)/vault.key",
            ])
        try terminal.expect("The source:\n")
        try terminal.expect("Passphrase: ")
        try terminal.type("fake words\r")
        try terminal.expect("1 found, 1 copied")
        #expect(try terminal.end() == 0)
    }

    @Test func whatATimeoutCutShortSaysSo() async throws {
        let source = InMemoryVault()
        try await source.storage(service: "s").store(token: "fake", for: "k")
        let summary = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await TokenMigration(from: source, to: InMemoryVault()).run()
        }.value
        let report = MigrationReport(summary: summary, conflicts: .fail)
        let timedOut = #expect(throws: CommandFailure.self) { try report.check(isTimedOut: true) }
        #expect(timedOut?.status == .timedOut)
        let cancelled = #expect(throws: CommandFailure.self) { try report.check(isTimedOut: false) }
        #expect(cancelled?.status == .failure)
    }
}
