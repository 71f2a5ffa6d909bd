import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

/// Commands in the home of another user, as sudo runs them.
@Suite(.tags(.programs), .from(.usual), .enabled(if: geteuid() == 0, "only root can be two users"))
struct ForeignHomeTests {
    let person: Person

    init() throws { person = try Person() }

    private func asRoot(_ words: String...) throws -> Program.Outcome {
        try Program.capture(
            Program.beside("vaultctl"), words + ["--no-input", "--no-agent"],
            environment: ["HOME=\(person.home)", "PATH=/usr/bin", "XDG_RUNTIME_DIR=\(person.home)"])
    }

    @Test func theOwnerIsNamedToRoot() throws {
        for words in [["list"], ["status"], ["store", "k"]] {
            let outcome = try Program.capture(
                Program.beside("vaultctl"), words + ["--no-input", "--no-agent"],
                environment: ["HOME=\(person.home)", "PATH=/usr/bin"])
            #expect(outcome.status == 8, "\(outcome)")
            #expect(
                outcome.error.contains("belongs to the user with the number \(person.user)")
                    && outcome.error.contains("sudo") && !outcome.error.contains("chmod"), "\(outcome.error)")
        }
    }

    @Test func rootMakesNoDirectoriesInAnothersHome() throws {
        _ = try Program.run("/bin/rm", ["-rf", "\(person.home)/.local"])
        let outcome = try asRoot("init", "--key-file", "\(person.home)/new.key")
        #expect(outcome.status == 8 && outcome.error.contains("sudo"), "\(outcome)")
        for name in [".local", "new.key"] {
            #expect(try !SmallFile.exists(FilePath(person.home).appending(name)), "\(name)")
        }
        #expect(try person.run("init").status == 0)
    }

    @Test func aDirectoryThatMayNotBeEnteredIsNoMissingVault() throws {
        let other = try Person()
        try #require(chmod(person.home, 0o700) == 0)
        for words in [["list"], ["status"], ["init"]] {
            let outcome = try other.run(words, with: ["HOME=\(person.home)"])
            #expect(outcome.status != 0, "\(outcome)")
            #expect(
                outcome.error.contains("the user with the number \(person.user)")
                    && !outcome.error.contains("create"), "\(words): \(outcome.error)")
        }
    }
}
