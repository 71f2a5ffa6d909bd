import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// A vault's file with a second name: one vault by both, which nothing makes two of.
@Suite struct HardLinkTests {
    private let sandbox: Sandbox
    private let vault: BlockingFileVault
    private let directory: PosixDirectory

    init() throws {
        sandbox = try Sandbox()
        vault = try sandbox.made()
        directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        try directory.link("test.vault", to: "second.vault")
    }

    private func identity(_ name: String) throws -> FileIdentity? {
        try directory.attributes(of: name)?.identity
    }

    private var isOneFile: Bool {
        get throws { try identity("test.vault") == identity("second.vault") }
    }

    @Test func itIsUsedByBothNames() throws {
        let storage = vault.storage(service: "s")
        let second = try sandbox.opened("second.vault")
        try second.storage(service: "s").store(token: "by the other name", for: "c")
        try storage.store(token: "again", for: "a")
        // A deletion in a small vault usually compacts. Here the value is overwritten in place.
        let before = try sandbox.bytes().count
        try storage.delete(for: "b")
        #expect(try isOneFile && sandbox.bytes().count == before)
        let expected = ["a": "again", "c": "by the other name"]
        #expect(try values(in: vault) == expected && values(in: second) == expected)
        #expect(try vault.verify().isClean)
        let notes = try vault.status().notes
        #expect(notes.count == 1 && notes[0].contains("another name (a hard link)"), "\(notes)")
        // The status shows the same before the first unlock.
        let locked = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(try locked.status().notes == notes)
    }

    @Test func nothingReplacesIt() throws {
        try sandbox.keepCopy(as: "backup")
        let before = try sandbox.bytes()
        let slots = try vault.slots()
        let part = UnlockMethod.keyFile(Secret([UInt8](repeating: 0x55, count: 32)))
        for call: () throws -> Void in [
            { _ = try vault.compact() }, { _ = try vault.rotateKeys(keeping: [keyFile]) },
            { _ = try sandbox.copy("backup").restore(to: sandbox.vault) },
            { _ = try sandbox.copy(nil).adopt() },
            { try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration) },
        ] {
            let failed = failure(call)
            #expect(
                failed?.code == .duplicateVault && failed?.advice?.contains("-samefile") == true, "\(failed)")
        }
        #expect(try isOneFile && sandbox.bytes() == before && vault.slots() == slots)
        #expect(try sandbox.names == ["test.vault", "second.vault", "backup"])
        // A change of the keybag alone still works.
        try vault.removeSlot(try vault.addSlot(part).id)
        #expect(try isOneFile)
    }

    @Test func withoutTheOtherNameAllIsAsBefore() throws {
        #expect(failure { _ = try vault.compact() }?.code == .duplicateVault)
        try directory.remove("second.vault")
        let before = try identity("test.vault")
        _ = try vault.compact()
        #expect(try identity("test.vault") != before && vault.status().notes.isEmpty)
        #expect(try values(in: vault).count == 2)
    }

    /// To destroy the vault by a name that is not the one this device knows removes that name.
    @Test func theOtherNameCanBeRemovedByDestroying() throws {
        try BlockingFileVault.destroy(
            at: sandbox.path(of: "second.vault"), configuration: sandbox.configuration)
        #expect(try sandbox.names == ["test.vault"])
        _ = try vault.compact()
        #expect(try values(in: try sandbox.opened()).count == 2)
    }

    /// A crash of a restore, between the second name for what is kept and the new file's taking the first.
    @Test func whatARestoreLeftIsNoOtherName() throws {
        try directory.remove("second.vault")
        try directory.link("test.vault", to: "test.vault.replaced")
        // Without RENAME_NOREPLACE, a crash may come while a file has both the vault's name and its previous
        // name.
        try directory.link("test.vault", to: ".test.vault.0123456789abcdef")
        #expect(try vault.status().notes.isEmpty)
        _ = try vault.compact()
        #expect(try sandbox.names == ["test.vault"])
        #expect(try values(in: try sandbox.opened()).count == 2)
        // A file of another program with such a name stays.
        try sandbox.write(Array("a letter".utf8), to: "test.vault.replaced")
        try directory.link("test.vault.replaced", to: "letter")
        try vault.storage(service: "s").delete(for: "a")
        _ = try vault.compact()
        #expect(try sandbox.names == ["test.vault", "test.vault.replaced", "letter"])
        try directory.link("test.vault", to: ".test.vault.0123456789abcdef0123456789abcdef")
        try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(try sandbox.names == ["test.vault.replaced", "letter"])
    }

    /// No caller asks for the compaction of a large vault. The vault postpones it without an error, and makes
    /// up for it later.
    @Test func compactionWaitsForTheOtherNameToGo() throws {
        let storage = vault.storage(service: "s")
        let large = String(repeating: "x", count: 600_000)
        for round in 0..<6 { try storage.store(token: "\(round)" + large, for: "large") }
        #expect(try isOneFile && sandbox.bytes().count > 3_000_000)
        try directory.remove("second.vault")
        for round in 0..<2 { try storage.store(token: "\(round)" + large, for: "large") }
        #expect(try sandbox.bytes().count < 3_000_000)
        #expect(try vault.verify().isClean)
    }
}
