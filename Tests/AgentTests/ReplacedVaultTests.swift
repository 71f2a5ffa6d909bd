import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

/// A vault that goes away with its directory while the agent holds it, and one that is put in its place.
@Suite(.tags(.programs), .from(.usual)) struct ReplacedVaultTests {
    let home: CommandHome
    private var directory: String { "\(home.path)/.local/share/tokenvault" }
    private var backup: String { "\(home.path)/backup.vault" }

    init() throws {
        home = try CommandHome()
        try #require(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let stored = try home.run("store", "k", "--policy", "when-unlocked", input: "fake")
        try #require(stored.status == 0, "\(stored.error)")
        try copy("\(directory)/default.vault", to: backup)
        let state = "\(home.path)/.local/state/tokenvault"
        try #require(try Program.run("/bin/rm", ["-rf", directory, state]) == 0)
    }

    private func copy(_ file: String, to place: String) throws {
        try #require(try Program.run("/bin/cp", ["-p", file, place]) == 0)
    }

    private func expectUse(of value: String?) throws {
        let status = try home.run("status", "--json")
        #expect(status.status == 0 && status.output.contains(#""agent":false"#), "\(status.error)")
        let unlock = try home.run("unlock", "--key-file", home.keyFile)
        #expect(unlock.status == 0, "\(unlock.error)")
        let retrieved = try home.run("retrieve", "k")
        #expect(retrieved.status == (value == nil ? 3 : 0), "\(retrieved.error)")
        #expect(retrieved.output == value ?? "")
        #expect(try home.run("status", "--json").output.contains(#""agent":true"#))
    }

    @Test func oneThatIsRestoredIsUsed() throws {
        let restored = try home.run("restore", backup, "--key-file", home.keyFile, "--yes")
        let note = "the agent released the vault, which was restored"
        #expect(restored.status == 0 && restored.error.contains(note), "\(restored.error)")
        let here = try home.run("retrieve", "k", with: ["VAULTCTL_KEY_FILE=\(home.keyFile)"])
        #expect(here.status == 0 && here.output == "fake", "\(here.error)")
        try expectUse(of: "fake")
    }

    @Test func oneThatIsMadeIsUsed() throws {
        #expect(try home.run("init", "--key-file", home.keyFile).status == 0)
        try expectUse(of: nil)
    }

    @Test func oneThatIsPutThereIsUsedWithUnlock() throws {
        try #require(mkdir(directory, 0o700) == 0)
        try copy(backup, to: "\(directory)/default.vault")
        let unlock = try home.run("unlock", "--key-file", home.keyFile)
        #expect(unlock.status == 0, "\(unlock.error)")
        #expect(try home.run("retrieve", "k").output == "fake")
        #expect(try home.run("status", "--json").output.contains(#""agent":true"#))
    }

    /// What is put there is opened with what is at hand, as if no agent held anything; `retrieve` asks for the item at once.
    @Test func oneThatIsPutThereIsReadWithItsKey() throws {
        try #require(mkdir(directory, 0o700) == 0)
        try copy(backup, to: "\(directory)/default.vault")
        let retrieved = try home.run("retrieve", "k", with: ["VAULTCTL_KEY_FILE=\(home.keyFile)"])
        #expect(retrieved.status == 0 && retrieved.output == "fake", "\(retrieved.error)")
        let json = try home.run("retrieve", "k", "--json", with: ["VAULTCTL_KEY_FILE=\(home.keyFile)"])
        #expect(json.status == 0 && json.output.contains("\"fake\""), "\(json.error)")
    }

    @Test func statusTellsOfOneThatIsPutThere() throws {
        try #require(mkdir(directory, 0o700) == 0)
        try copy(backup, to: "\(directory)/default.vault")
        try expectUse(of: "fake")
    }

    @Test func restoringLetsGoOfTheVaultThatIsHeld() throws {
        try #require(try home.run("restore", backup, "--key-file", home.keyFile, "--yes").status == 0)
        try #require(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try home.run("adopt", "--key-file", home.keyFile, "--yes").status == 0)
        #expect(try home.run("status", "--json").output.contains(#""agent":false"#))
        try #require(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try home.run("restore", backup, "--key-file", home.keyFile, "--yes").status == 0)
        #expect(try home.run("status", "--json").output.contains(#""agent":false"#))
    }
}
