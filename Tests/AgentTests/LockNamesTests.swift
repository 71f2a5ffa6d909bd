import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// `vaultctl lock` says that it is done when nothing of the vault can be read any more, whatever it is called.
@Suite(.tags(.programs), .from(.usual)) struct LockNamesTests {
    let home: CommandHome
    private var directory: String { "\(home.path)/.local/share/tokenvault" }
    private var file: String { "\(directory)/default.vault" }

    init() throws {
        home = try CommandHome()
        try #require(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        try #require(try home.run("store", "k", "--policy", "when-unlocked", input: "a").status == 0)
    }

    private func expectLocked() throws {
        let vault = BlockingAgentVault(at: FilePath(file), agent: home.place, timeout: .seconds(300))
        #expect(try vault.lockState() != .unlocked)
    }

    @Test func byAnotherHardLink() throws {
        try #require(link(file, "\(home.path)/other.vault") == 0)
        let locked = try home.run("lock", "--vault", "\(home.path)/other.vault")
        #expect(locked.status == 0 && locked.error.isEmpty, "\(locked.error)")
        try expectLocked()
    }

    @Test func byTheNameThatItHasByNow() throws {
        try #require(rename(file, "\(home.path)/moved.vault") == 0)
        let locked = try home.run("lock", "--vault", "\(home.path)/moved.vault")
        #expect(locked.status == 0 && locked.error.isEmpty, "\(locked.error)")
        try #require(rename("\(home.path)/moved.vault", file) == 0)
        try expectLocked()
    }

    /// It is another file since, and the agent has not looked at it yet.
    @Test func byTheNameUnderWhichItWasRewritten() throws {
        try #require(rename(directory, directory + ".away") == 0)
        let away = directory + ".away/default.vault"
        let compacted = try home.run("compact", "--vault", away, "--key-file", home.keyFile)
        #expect(compacted.status == 0, "\(compacted.error)")
        let locked = try home.run("lock", "--vault", away)
        #expect(locked.status == 0 && locked.error.isEmpty, "\(locked.error)")
        try #require(rename(directory + ".away", directory) == 0)
        try expectLocked()
        #expect(try home.run("retrieve", "k").status == 4)
    }

    /// A link in place of its directory leads elsewhere by now.
    @Test func byThePathThatIsALinkByNow() throws {
        let (away, elsewhere) = (directory + ".away", "\(home.path)/elsewhere")
        try #require(mkdir(elsewhere, 0o700) == 0)
        try #require(rename(directory, away) == 0 && symlink(elsewhere, directory) == 0)
        let locked = try home.run("lock")
        #expect(locked.status == 0 && locked.error.isEmpty, "\(locked.error)")
        try #require(unlink(directory) == 0 && rename(away, directory) == 0)
        try expectLocked()
    }

    @Test func byTheNameThatItHad() throws {
        try #require(rename(file, "\(home.path)/moved.vault") == 0)
        let locked = try home.run("lock")
        #expect(locked.status == 0 && locked.error.isEmpty, "\(locked.error)")
        try #require(rename("\(home.path)/moved.vault", file) == 0)
        try expectLocked()
    }

    @Test func aNameThatIsNoVaultsIsNoSuccessWhileOneIsOpen() throws {
        let typo = try home.run("lock", "--vault", "\(directory)/defualt.vault")
        #expect(typo.status == 8 && typo.error.contains("lock --all"), "\(typo.error)")
        #expect(try home.run("retrieve", "k").status == 0)
        let open = try home.run("store", "open", "--policy", "after-first-unlock", input: "b")
        try #require(open.status == 0, "\(open.error)")
        #expect(try home.run("lock", "--all").status == 0)
        let again = try home.run("lock", "--vault", "\(directory)/defualt.vault")
        #expect(again.status == 8, "what may be read after the first unlock is open: \(again.error)")
        #expect(try home.run("agent", "--stop").status == 0)
        let closed = try home.run("lock", "--vault", "\(directory)/defualt.vault")
        #expect(closed.status == 0, "\(closed.error)")
    }

    /// The second file has a mode with which no program opens a vault. The lock works all the same.
    @Test func byALinkAndByAFileThatOthersMayRead() throws {
        let other = "\(home.path)/other.vault"
        try #require(symlink(file, other) == 0)
        #expect(try home.run("lock", "--vault", other).status == 0)
        try expectLocked()
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        try #require(link(file, "\(home.path)/x.torn") == 0 && chmod(file, 0o644) == 0)
        #expect(try home.run("lock", "--vault", "\(home.path)/x.torn").status == 0)
        try #require(chmod(file, 0o600) == 0)
        try expectLocked()
    }

    @Test func whatIsNoVaultIsNoSuccessWhileOneIsOpen() throws {
        try #require(mkfifo("\(home.path)/pipe", 0o600) == 0)
        for path in [directory, "\(home.path)/pipe", "/dev/null"] {
            let refused = try home.run("lock", "--vault", path)
            #expect(refused.status == 8 && refused.error.contains("lock --all"), "\(path): \(refused.error)")
        }
    }

    @Test func anotherVaultStaysOpen() throws {
        let other = "\(home.path)/other.vault"
        try #require(try home.run("init", "--vault", other, "--key-file", home.keyFile).status == 0)
        let locked = try home.run("lock", "--vault", other)
        #expect(locked.status == 0, "\(locked.error)")
        #expect(try home.run("retrieve", "k").output == "a")
    }

    @Test func withoutTheAgentThereIsNothingToLockWith() throws {
        for words in [["lock", "--no-agent"], ["lock", "--all", "--no-agent"]] {
            let refused = try home.run(words)
            #expect(refused.status == 64, "\(refused.error)")
        }
        #expect(try home.run("retrieve", "k").status == 0)
    }

    @Test func anUnlockWaitsForAnAgentThatIsAboutToEnd() async throws {
        #expect(try home.run("agent", "--stop").status == 0)
        var directory: SocketDirectory? = try SocketDirectory(home.place.directory, creating: true)
        try directory?.take()
        let late = try home.run("unlock", "--key-file", home.keyFile, "--timeout", "1")
        #expect(late.status == 8 || late.status == 10, "\(late.error)")
        #expect(late.error.contains("pkill"), "\(late.error)")
        let waiting = Task.detached { [home] in try home.run("unlock", "--key-file", home.keyFile) }
        directory = nil
        let unlocked = try await waiting.value
        #expect(unlocked.status == 0, "\(unlocked.error)")
    }
}
