import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// One vault at two paths: told, read on request, settled by adopting one.
@Suite struct DuplicateTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private func anchor(of vault: BlockingFileVault) throws -> [UInt8] {
        try SmallFile.read(sandbox.path.appending("state/\(vault.identifier).anchor"), limit: 4_096).bytes
    }

    @Test func aCopyIsNotTakenForTheVault() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "copy.vault")
        let anchor = try anchor(of: vault)
        let failed = failure { _ = try sandbox.opened("copy.vault") }
        #expect(
            failed?.code == .duplicateVault
                && failed?.underlying == "the other path is \(sandbox.vault.string)")
        // A copy that is opened on purpose can be read, and nothing else.
        let copy = try sandbox.opened("copy.vault", readingCopies: true)
        #expect(try values(in: copy) == ["a": "first a", "b": "first b"])
        #expect(try copy.verify().isClean)
        #expect(try copy.status().notes.contains("this is a copy: the vault is \(sandbox.vault.string)"))
        for change: () throws -> Void in [
            { try copy.storage(service: "s").store(token: "x", for: "a") },
            { try copy.storage(service: "s").delete(for: "a") }, { _ = try copy.compact() },
            { _ = try copy.addSlot(keyFile) },
        ] {
            #expect(failure(change)?.code == .duplicateVault)
        }
        #expect(try self.anchor(of: vault) == anchor)
        try vault.storage(service: "s").store(token: "second", for: "a")
        #expect(try copy.storage(service: "s").retrieve(for: "a") == "first a")
    }

    @Test func aMovedVaultIsTheVault() throws {
        try sandbox.made().close()
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        try directory.rename("test.vault", to: "moved.vault", replacing: false)
        try sandbox.opened("moved.vault").close()
        // This device knows the new path, so a file at the old path is a copy.
        try sandbox.write(try sandbox.bytes(of: "moved.vault"))
        #expect(failure { _ = try sandbox.opened() }?.code == .duplicateVault)
        #expect(try values(in: try sandbox.opened("moved.vault")).count == 2)
    }

    /// By a second name or by a link on the way the same file is one vault.
    @Test func anotherNameIsNoCopy() throws {
        let vault = try sandbox.made()
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        try directory.link("test.vault", to: "second.vault")
        let second = try sandbox.opened("second.vault")
        try second.storage(service: "s").store(token: "by the other name", for: "c")
        #expect(try vault.storage(service: "s").retrieve(for: "c") == "by the other name")
        #expect(symlink("vaults", sandbox.path.appending("linked").string) == 0)
        let linked = try BlockingFileVault.open(
            at: sandbox.path.appending("linked/test.vault"), configuration: sandbox.configuration)
        try linked.unlock(with: keyFile)
        // Another vault at the first path is not a copy of the vault either.
        _ = try BlockingFileVault.create(
            at: sandbox.path(of: "other.vault"), unlockMethod: keyFile, configuration: sandbox.configuration)
        try directory.rename("other.vault", to: "test.vault", replacing: true)
        #expect(try values(in: try sandbox.opened("second.vault")).count == 3)
    }

    @Test func adoptingSettlesIt() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "copy.vault")
        try vault.storage(service: "s").store(token: "only there", for: "c")
        let report = try sandbox.copy("copy.vault").adopt()
        #expect(report.staleCopy == sandbox.vault && report.items == 2 && report.replaced == nil)
        let adopted = try sandbox.opened("copy.vault")
        #expect(try values(in: adopted) == ["a": "first a", "b": "first b"])
        #expect(try adopted.verify().isClean && adopted.status().rollbackProtection == .anchored)
        #expect(failure { _ = try sandbox.opened() }?.code == .duplicateVault)
        #expect(try values(in: try sandbox.opened(readingCopies: true))["c"] == "only there")
        // Calls on an open handle of the copy fail, and do not make the vault look old.
        for change: () throws -> Void in [
            { try vault.storage(service: "s").store(token: "into the copy", for: "d") },
            { try vault.storage(service: "s").delete(for: "c") }, { _ = try vault.compact() },
        ] {
            #expect(failure(change)?.code == .duplicateVault)
        }
        adopted.close()
        #expect(try values(in: try sandbox.opened("copy.vault")).count == 2)
        // Without the adopted file, the copy is old.
        try PosixDirectory(sandbox.vault.removingLastComponent()).remove("copy.vault")
        #expect(failure { _ = try sandbox.opened() }?.code == .rolledBack)
    }

    /// A merge does not decide which of the two is the vault.
    @Test(arguments: [false, true]) func nothingIsMergedIntoACopy(isRehearsal: Bool) throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "copy.vault")
        try vault.storage(service: "s").store(token: "only there", for: "c")
        vault.close()
        let (copy, original) = (try sandbox.copy("copy.vault"), try sandbox.copy(nil))
        #expect(failure { _ = try copy.merge(original, isRehearsal: isRehearsal) }?.code == .duplicateVault)
        #expect(try values(in: sandbox.opened()).count == 3)
        #expect(try original.merge(copy, isRehearsal: isRehearsal).isUpToDate)
    }

    /// Both files begin a life of the same number.
    @Test func aCompactionOfTheOtherMovesNothing() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "copy.vault")
        let report = try sandbox.copy("copy.vault").adopt()
        #expect(report.staleCopy == sandbox.vault)
        let adopted = try sandbox.opened("copy.vault")
        let anchor = try anchor(of: adopted)
        #expect(failure { _ = try vault.compact() }?.code == .duplicateVault)
        let state = vault.location.state
        let log = try vault.session().log
        var other = log.state.withLock { $0 }
        other.epoch = .next(after: other.epoch)
        other.sequence += 9
        Anchor(directory: state, vault: log.codec.vault, key: log.codec.keys.anchor).advance(
            to: other, after: other.seen)
        #expect(try self.anchor(of: adopted) == anchor)
        adopted.close()
        #expect(try values(in: try sandbox.opened("copy.vault")).count == 2)
    }

    /// The call adopts the file that is at the path when it locks the file. An earlier file that was there at
    /// opening does not matter.
    @Test func aCompactionInTheMiddleLosesNothing() throws {
        let vault = try sandbox.made()
        let copy = try sandbox.copy(nil)
        let storage = vault.storage(service: "s")
        try storage.store(token: "acknowledged", for: "c")
        try storage.delete(for: "b")
        _ = try vault.compact()
        try storage.store(token: "acknowledged", for: "d")
        let report = try copy.adopt()
        #expect(report.replaced == nil)
        let expected = ["a": "first a", "c": "acknowledged", "d": "acknowledged"]
        #expect(try values(in: vault) == expected)
        #expect(try values(in: try sandbox.opened()) == expected)
        // Another file took the copy's place, and the restore rejects that file.
        try sandbox.keepCopy(as: "backup")
        let backup = try sandbox.copy("backup")
        try sandbox.keepCopy(as: "newer")
        try PosixDirectory(sandbox.vault.removingLastComponent()).rename(
            "newer", to: "backup", replacing: true)
        #expect(failure { _ = try backup.restore(to: sandbox.vault) }?.code == .conflict)
        #expect(try values(in: vault) == expected)
    }

    @Test func aPathThatIsNoTextIsRememberedAsItIs() throws {
        let directory = FilePath(bytes: sandbox.path.bytes + Array("/x".utf8) + [0xff])
        let path = directory.appending("test.vault")
        let vault = try BlockingFileVault.create(
            at: path, unlockMethod: keyFile, configuration: sandbox.configuration)
        try vault.storage(service: "s").store(token: "fake", for: "a")
        let bytes = try SmallFile.read(path, limit: 1 << 20).bytes
        try SmallFile.create(sandbox.path.appending("copy.vault"), bytes)
        let copy = try BlockingFileVault.open(
            at: sandbox.path.appending("copy.vault"), configuration: sandbox.configuration)
        #expect(failure { try copy.unlock(with: keyFile) }?.code == .duplicateVault)
        #expect(try BlockingFileVault.open(at: path, configuration: sandbox.configuration).slots().count == 1)
    }

    @Test func aVaultAtOnePathCanBeAdopted() throws {
        try sandbox.made().close()
        let report = try sandbox.copy(nil).adopt()
        #expect(report.staleCopy == nil && report.items == 2)
        #expect(try values(in: try sandbox.opened()).count == 2)
        #expect(try sandbox.names == ["test.vault"])
    }

    @Test func conflictCopiesAreShown() throws {
        let vault = try sandbox.made()
        let conflicting = [
            "test (conflicted copy 2026-11-21 190753).vault", "test-laptop.vault",
            "test.sync-conflict-20261121-190753-ABCDEFG.vault",
        ]
        for name in conflicting + ["test.vault.backup", "other.vault"] { try sandbox.keepCopy(as: name) }
        try sandbox.write(Array("not a vault".utf8), to: "test-notes.vault")
        #expect(try vault.status().conflictingCopies == conflicting)
        // The status shows the same before the first unlock.
        #expect(
            try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration).status()
                .conflictingCopies == conflicting)
    }

    /// That the system cannot look says nothing of what is there: a copy is not taken for the vault.
    @Test func withoutDescriptorsNoCopyIsTheVault() throws {
        try sandbox.made().close()
        try sandbox.keepCopy(as: "copy.vault")
        let probe = try Child(
            testProgram("LimitProbe"),
            ["descriptors", sandbox.path(of: "copy.vault").string, sandbox.path.appending("state").string],
            output: sandbox.path.appending("output"))
        #expect(probe.wait() == 0)
        let told = try probe.readOutput().split(separator: "\n")
        try #require(told.count == 14, "\(told)")
        #expect(told[0] == "resourcesExhausted" && told[11] == "duplicateVault")
        #expect(Set(told[..<12]) == ["resourcesExhausted", "duplicateVault"], "\(told)")
        #expect(Array(told[12...]) == ["resourcesExhausted", "resourcesExhausted"], "\(told)")
    }

    /// Adopting is over once this device knows the path.
    @Test func whoCannotRememberThePathIsToldSo() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "copy.vault")
        // The directory blocks the temporary name of the file to write.
        let obstacle = sandbox.path.appending("state/\(vault.identifier).path.new")
        try PosixDirectory.makeAll(obstacle.appending("something"))
        let failed = failure { _ = try sandbox.copy("copy.vault").adopt() }
        #expect(failed?.code == .outcomeUnknown && failed?.advice?.contains("adopt the file again") == true)
        #expect(failure { _ = try sandbox.opened("copy.vault") }?.code == .duplicateVault)
        removeTree(obstacle)
        _ = try sandbox.copy("copy.vault").adopt()
        #expect(try values(in: try sandbox.opened("copy.vault")).count == 2)
        #expect(failure { _ = try sandbox.opened() }?.code == .duplicateVault)
        // Restoring a copy to its own place needs no such record.
        try PosixDirectory.makeAll(obstacle.appending("something"))
        #expect(try sandbox.copy("copy.vault").restore(to: sandbox.path(of: "copy.vault")).items == 2)
    }

    /// A file system keeps any bytes: what is no text is shown by its bytes.
    @Test func conflictCopiesWhoseNamesAreNoTextAreShown() throws {
        let vault = try sandbox.made()
        let bytes = try sandbox.bytes()
        var paths: [[UInt8]] = []
        for name in [
            Array("test-M".utf8) + [0xfc] + Array("ller\\.vault".utf8),
            Array("test.sync-conflict-".utf8) + [0xf0, 0x9f] + Array(".vault".utf8),
        ] {
            // The helpers of the tests take only valid UTF-8.
            let path = Array(sandbox.vault.removingLastComponent().string.utf8) + [UInt8(ascii: "/")] + name
            let descriptor = path.map { CChar(bitPattern: $0) }.withUnsafeBufferPointer { text in
                open(Array(text) + [0], O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            }
            #expect(descriptor >= 0 && write(descriptor, bytes, bytes.count) == bytes.count)
            close(descriptor)
            paths.append(path)
        }
        defer { for path in paths { unlink(path.map { CChar(bitPattern: $0) } + [0]) } }
        try sandbox.keepCopy(as: "test-b.vault")
        #expect(
            try vault.status().conflictingCopies
                == ["test-M\\xfcller\\\\.vault", "test-b.vault", "test.sync-conflict-\\xf0\\x9f.vault"])
    }

    @Test(arguments: [
        ("default.vault", "default.sync-conflict-20261121-190753-ABCDEFG.vault", true),
        ("default.vault", "default (Peter's conflicted copy 2026-11-21).vault", true),
        ("default.vault", "default-PETERS-LAPTOP.vault", true), ("default.vault", "default (1).vault", true),
        ("default.vault", "default.vault", false), ("default.vault", "default2.vault", false),
        ("default.vault", "default.vault.replaced", false), (".vault", ".vault (conflicted copy)", true),
        ("vault", "vault.sync-conflict-20261121-190753-ABCDEFG", true), ("a.b.vault", "a.b (2).vault", true),
        ("a.b.vault", "a (2).vault", false),
    ]) func namesOfConflictCopies(original: String, name: String, isOne: Bool) {
        #expect(ConflictCopies.isConflict(Array(name.utf8), of: Array(original.utf8)) == isOne)
    }
}
