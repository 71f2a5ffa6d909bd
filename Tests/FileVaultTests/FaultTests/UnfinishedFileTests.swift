import Glibc
import HookedStorage
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// The files of a program that is stopped while it makes a vault or an export. Where files can be made
/// without a name, none is left. Elsewhere the next program removes it.
@Suite struct UnfinishedFileTests {
    private let sandbox: Sandbox
    private let words = Secret(utf8: "fake export words")
    private var directory: FilePath { sandbox.vault.removingLastComponent() }

    init() throws {
        sandbox = try Sandbox()
        try PosixDirectory.makeAll(directory)
        try PosixDirectory.makeAll(sandbox.path.appending("state"))
    }

    private func location(in directory: any DiskDirectory) throws -> VaultLocation {
        VaultLocation(
            directory: directory, name: "test.vault",
            state: try PosixDirectory(sandbox.path.appending("state")), path: sandbox.vault)
    }

    private func make(in directory: any DiskDirectory) throws -> BlockingFileVault {
        try BlockingFileVault.create(
            at: try location(in: directory), unlockMethod: keyFile, configuration: sandbox.configuration)
    }

    @Test func nothingHasANameBeforeItIsWhole() throws {
        let base = try PosixDirectory(directory)
        let seen = Mutex<[Set<String>]>([])
        let watched = HookedDirectory(base) { () throws(SystemFailure) in
            let names = Set(try base.names())
            seen.withLock { $0.append(names) }
        }
        let vault = try make(in: watched)
        #expect(seen.withLock { $0 }.first == [])
        seen.withLock { $0 = [] }
        _ = try vault.export(to: "out", in: watched, passphrase: words)
        #expect(seen.withLock { $0 }.first == ["test.vault"])
        seen.withLock { $0 = [] }
        let copy = try sandbox.copy("test.vault")
        _ = try copy.salvage(
            to: VaultLocation(directory: watched, name: "saved", state: nil, path: sandbox.path(of: "saved")))
        #expect(seen.withLock { $0 }.first == ["test.vault", "out"])
        #expect(try sandbox.names == ["test.vault", "out", "saved"])
        #expect(try base.attributes(of: "out")?.mode == 0o600)
        // A name that is taken meanwhile is not replaced.
        #expect(throws: SystemFailure(.fileExists, "linkat")) {
            try base.open("", .nameless).takeName("out")
        }
    }

    /// A directory of a file system that has no files without names; what it makes first is taken away at once.
    private final class NamingDirectory: ForwardingDirectory {
        let base: any DiskDirectory
        private let losses: Mutex<Int>

        init(_ path: FilePath, losing count: Int = 0) throws {
            base = try PosixDirectory(path)
            losses = Mutex(count)
        }

        func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
            if access == .nameless { throw SystemFailure(.notSupportedOnSocket, "open(O_TMPFILE)") }
            let file = try base.open(name, access)
            guard access == .create else { return file }
            let isLost = losses.withLock { losses in
                losses -= 1
                return losses >= 0
            }
            if isLost { try base.remove(name) }
            return file
        }
    }

    @Test func whereAllFilesHaveNamesItIsTheSame() throws {
        let naming = try NamingDirectory(directory, losing: 2)
        let vault = try make(in: naming)
        #expect(try vault.export(to: "out", in: naming, passphrase: words).items == 0)
        #expect(try sandbox.names == ["test.vault", "out"])
        #expect(try vault.verify().isClean)
    }

    private static let unfinishedVault = ".test.vault.0123456789abcdef"
    private static let unfinishedExport = ".export.0123456789abcdef"

    @Test func whatIsLeftIsToldAndRemoved() throws {
        let naming = try NamingDirectory(directory)
        let vault = try make(in: naming)
        let whole = try sandbox.bytes()
        let others = [".test.vault.0123456789abcdeg", ".test.vault.01234567", ".export.0123"]
        let left = [
            Self.unfinishedVault: Array(whole.prefix(9_000)),
            ".test.vault.0123456789abcdef0123456789abcdef": [],
            Self.unfinishedExport: Array("TVEXPORT and more".utf8), ".export.fedcba9876543210": [],
        ]
        let strange = [
            ".test.vault.00000000000000ff": Array("a person's own".utf8),
            ".export.00000000000000ff": Array("a person's own".utf8),
        ]
        for (name, bytes) in left { try sandbox.write(bytes, to: name) }
        for (name, bytes) in strange { try sandbox.write(bytes, to: name) }
        for name in others { try sandbox.write([], to: name) }
        #expect(symlink("/dev/null", directory.appending(".export.00000000000000ee").string) == 0)
        let notes = try vault.status().notes
        for name in left.keys {
            #expect(notes.contains { $0.hasPrefix("\(name) was left by a program") }, "\(notes)")
        }
        for name in strange.keys {
            #expect(
                notes.contains { $0.hasPrefix(name) && $0.contains("may be another file") }, "\(notes)")
        }
        #expect(!notes.contains { note in others.contains { note.contains("\($0) ") } }, "\(notes)")
        // A process that holds the lock is still writing the file.
        let held = try PosixDirectory(directory).open(Self.unfinishedVault, .readWrite)
        #expect(try held.tryLock(.exclusive))
        #expect(try !vault.status().notes.contains { $0.hasPrefix("\(Self.unfinishedVault) ") })
        _ = try vault.compact()
        let kept = Set(strange.keys).union(others).union([".export.00000000000000ee", "test.vault"])
        #expect(
            try sandbox.names
                == kept.union([Self.unfinishedVault, Self.unfinishedExport, ".export.fedcba9876543210"]))
        held.unlock()
        _ = try vault.compact()
        _ = try vault.export(to: "out", in: naming, passphrase: words)
        #expect(try sandbox.names == kept.union(["out"]))
        #expect(try vault.verify().isClean)
    }

    /// A second attempt succeeds after a first one that was stopped, and removes the unfinished file.
    @Test func makingAVaultAndDestroyingItRemoveItToo() throws {
        try sandbox.write([], to: Self.unfinishedVault)
        let vault = try make(in: try PosixDirectory(directory))
        #expect(try sandbox.names == ["test.vault"])
        vault.close()
        try sandbox.write([], to: Self.unfinishedVault)
        try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(try sandbox.names == [])
    }
}
