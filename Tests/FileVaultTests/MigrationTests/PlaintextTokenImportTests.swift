import Glibc
import HookedStorage
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultCore

/// A plaintext file of tokens that goes into a storage.
@Suite struct TokenFileAdoptionTests {
    private let sandbox: Sandbox
    private let storage = InMemoryTokenStorage(service: "s")

    init() throws { sandbox = try Sandbox() }

    private var path: FilePath { sandbox.path.appending("tokens") }
    private var leftover: FilePath { sandbox.path.appending(".tokens.adopted") }

    /// Lines of `key value`.
    private static let decode: PlaintextTokenImport.Decoding = { file in
        var secrets: [TokenKey: Secret] = [:]
        for line in (file.unprotectedText() ?? "").split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2 else { throw Errno.invalidArgument }
            secrets[TokenKey(String(words[0]))] = Secret(utf8: String(words[1]))
        }
        return secrets
    }

    private func write(_ text: String = "access fake-1\nrefresh fake-2\n", mode: mode_t = 0o600) throws {
        try SmallFile.create(path, Array(text.utf8))
        _ = chmod(path.string, mode)
    }

    private func adoption(_ rule: PlaintextTokenImport.ConflictRule = .fail) -> PlaintextTokenImport {
        PlaintextTokenImport(of: path, onConflict: rule, decode: Self.decode)
    }

    private func code(_ body: () throws -> Void) -> TokenStorageError.Code? {
        do { try body() } catch { return (error as? TokenStorageError)?.code }
        return nil
    }

    private func expectAdopted() throws {
        #expect(try storage.blocking.retrieve(for: "access") == "fake-1")
        #expect(try storage.blocking.retrieve(for: "refresh") == "fake-2")
        #expect(try !SmallFile.exists(path) && !SmallFile.exists(leftover))
    }

    @Test func theFileGoesIntoTheStorageOnce() async throws {
        try write(mode: 0o644)
        let summary = try await adoption().run(into: storage)
        #expect(summary.foundFile && summary.stored == ["access", "refresh"] && summary.wasReadableByOthers)
        try expectAdopted()
        #expect(try await adoption().run(into: storage) == PlaintextTokenImport.Summary())
        try expectAdopted()
    }

    @Test func itGoesIntoAVaultForBlockingCodeAlike() throws {
        try write()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        vault.lock()
        #expect(code { try adoption().run(into: vault.storage(service: "s")) } == .locked)
        #expect(try SmallFile.exists(path))
        try vault.unlock(with: keyFile)
        let summary = try adoption().run(into: vault.storage(service: "s"))
        #expect(summary.stored == ["access", "refresh"] && !summary.wasReadableByOthers)
        #expect(try vault.storage(service: "s").retrieve(for: "refresh") == "fake-2")
        #expect(try !SmallFile.exists(path))
    }

    @Test func anotherSecretInTheStorageIsForTheRule() throws {
        try write()
        try storage.blocking.store(token: "newer", for: "access")
        #expect(code { try adoption().run(into: storage.blocking) } == .conflict)
        #expect(try SmallFile.exists(path) && storage.blocking.retrieve(for: "refresh") == nil)
        let kept = try adoption(.keepStored).run(into: storage.blocking)
        #expect(kept.kept == ["access"] && kept.stored == ["refresh"])
        #expect(try storage.blocking.retrieve(for: "access") == "newer" && !SmallFile.exists(path))
        try write()
        let replaced = try adoption(.replace).run(into: storage.blocking)
        #expect(replaced.stored == ["access"] && replaced.unchanged == ["refresh"])
        try expectAdopted()
    }

    @Test func whatCannotBeTrustedOrReadIsLeft() throws {
        func expect(_ wanted: TokenStorageError.Code, sourceLocation: SourceLocation = #_sourceLocation)
            throws
        {
            #expect(
                code { try adoption().run(into: storage.blocking) } == wanted, sourceLocation: sourceLocation)
            #expect(try SmallFile.exists(path), sourceLocation: sourceLocation)
            #expect(try storage.blocking.list().items.isEmpty, sourceLocation: sourceLocation)
        }
        let directory = try PosixDirectory(sandbox.path)
        try write(mode: 0o622)
        try expect(.insecurePermissions)
        _ = chmod(path.string, 0o600)
        _ = chmod(sandbox.path.string, 0o777)
        try expect(.insecurePermissions)
        _ = chmod(sandbox.path.string, 0o700)
        try directory.rename("tokens", to: "elsewhere", replacing: true)
        symlink("elsewhere", path.string)
        try expect(.insecurePermissions)
        try directory.remove("tokens")
        mkfifo(path.string, 0o600)
        try expect(.invalidArgument)
        try directory.remove("tokens")
        for text in ["not what was expected", ""] {
            try write(text)
            try expect(.decodingFailed)
            try directory.remove("tokens")
        }
        if geteuid() == 0 {
            try write()
            _ = chown(path.string, 65_534, 65_534)
            try expect(.insecurePermissions)
        }
    }

    @Test func aFileThatChangesMeanwhileIsLeft() throws {
        try write()
        let path = path
        let adoption = PlaintextTokenImport(of: path) { file in
            let secrets = try Self.decode(file)
            let directory = try PosixDirectory(path.removingLastComponent())
            try directory.open("tokens", .readWrite).write(Array("access newer".utf8), at: 0)
            return secrets
        }
        #expect(code { try adoption.run(into: storage.blocking) } == .conflict)
        #expect(try SmallFile.read(path, limit: 100).bytes.starts(with: Array("access newer".utf8)))
        #expect(try !SmallFile.exists(leftover))
    }

    /// A newer file in its place, and the machine stops before any step: what was never stored is never removed.
    @Test func aNewerFileIsNeverLost() throws {
        var steps = 0
        while true {
            try storage.blocking.deleteAll()
            try write()
            let disk = try DyingDirectory(sandbox.path, after: steps)
            let path = path
            let adoption = PlaintextTokenImport(of: "tokens", in: disk) { file in
                let secrets = try Self.decode(file)
                let fresh = path.removingLastComponent().appending("fresh")
                try SmallFile.create(fresh, Array("access newer\nrefresh newer\n".utf8))
                try PosixDirectory(path.removingLastComponent()).rename(
                    "fresh", to: "tokens", replacing: true)
                return secrets
            }
            let failure = code { try adoption.run(into: storage.blocking) }
            // If the import fails before the file is read, there is no newer file.
            let isNewer =
                try [path, sandbox.path.appending(".tokens.adopting")].contains { path in
                    try SmallFile.exists(path)
                        && SmallFile.read(path, limit: 100).bytes.starts(with: Array("access newer".utf8))
                }
            try self.adoption(.replace).run(into: storage.blocking)
            #expect(
                try storage.blocking.retrieve(for: "access") == (isNewer ? "newer" : "fake-1"), "\(steps)")
            #expect(try !SmallFile.exists(path) && !SmallFile.exists(leftover))
            if failure == .conflict { break }
            steps += 1
        }
        #expect(steps > 8)
    }

    @Test func whatCannotBeOverwrittenIsRemoved() throws {
        try write(mode: 0o400)
        try PosixDirectory(sandbox.path).link("tokens", to: "second name")
        try adoption().run(into: storage.blocking)
        try expectAdopted()
        // The file under its second name keeps its contents.
        let second = try SmallFile.read(sandbox.path.appending("second name"), limit: 100).bytes
        #expect(second.starts(with: Array("access fake-1".utf8)))
    }

    @Test func aSecretThatIsNotReadBackKeepsTheFile() async throws {
        try write()
        let forgetful = HookedStorage(
            base: storage, reading: { _ in nil }, hook: { _, _, _ throws(TokenStorageError) in })
        await #expect(throws: TokenStorageError.self) { try await adoption().run(into: forgetful) }
        #expect(try SmallFile.exists(path))
    }

    /// The machine stops before any step: the secrets are somewhere, and the next run ends what was begun.
    @Test func whereverItEndsTheNextRunGoesOn() throws {
        var steps = 0
        while true {
            try storage.blocking.deleteAll()
            try write()
            let disk = try DyingDirectory(sandbox.path, after: steps)
            let failure = code {
                try PlaintextTokenImport(of: "tokens", in: disk, decode: Self.decode).run(
                    into: storage.blocking)
            }
            if failure == nil { break }
            let isStored = try storage.blocking.retrieve(for: "refresh") == "fake-2"
            let isInFile =
                try? SmallFile.read(path, limit: 100).bytes == Array("access fake-1\nrefresh fake-2\n".utf8)
            #expect(isStored || isInFile == true, "\(steps)")
            let summary = try adoption().run(into: storage.blocking)
            #expect(summary.stored.isEmpty || !isStored, "\(steps)")
            try expectAdopted()
            steps += 1
        }
        try expectAdopted()
        #expect(steps > 12)
    }
}

/// A real directory that stops answering after so many calls.
private final class DyingDirectory: ForwardingDirectory {
    final class Life: Sendable {
        private let left: Mutex<Int>
        init(_ calls: Int) { left = Mutex(calls) }
        func spend() throws(SystemFailure) {
            let isOver = left.withLock { left in
                left -= 1
                return left < 0
            }
            if isOver { throw SystemFailure(.ioError, "a dead disk") }
        }
    }

    let base: any DiskDirectory
    private let life: Life

    init(_ path: FilePath, after calls: Int) throws {
        base = try PosixDirectory(path)
        life = Life(calls)
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        try life.spend()
        return DyingFile(try base.open(name, access), life)
    }
    func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        try life.spend()
        return try base.attributes(of: name)
    }
    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        try life.spend()
        try base.rename(name, to: target, replacing: replacing)
    }
    func remove(_ name: String) throws(SystemFailure) {
        try life.spend()
        try base.remove(name)
    }
    func synchronize() throws(SystemFailure) {
        try life.spend()
        try base.synchronize()
    }
}

private final class DyingFile: ForwardingFile {
    let base: any DiskFile
    private let life: DyingDirectory.Life

    init(_ base: any DiskFile, _ life: DyingDirectory.Life) {
        self.base = base
        self.life = life
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        try life.spend()
        return try base.read(count, at: offset)
    }
    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        do {
            try life.spend()
        } catch {
            // Writes a part, as a crash would leave it.
            try base.write(Array(bytes.prefix(bytes.count / 2)), at: offset)
            throw error
        }
        try base.write(bytes, at: offset)
    }
    func synchronize() throws(SystemFailure) {
        try life.spend()
        try base.synchronize()
    }
    func attributes() throws(SystemFailure) -> FileAttributes {
        try life.spend()
        return try base.attributes()
    }
}
