import Glibc
import HookedStorage
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// A tail of any size costs no memory of its size.
@Suite struct LargeTailTests {
    /// The most memory that a process took which read, salvaged and wrote to the vault, in KiB.
    private func peak(_ sandbox: Sandbox, out: String) throws -> Int {
        let probe = try Child(
            testProgram("LimitProbe"),
            [
                "memory", sandbox.vault.string, sandbox.path.appending("state").string,
                sandbox.path.appending(out).string,
            ], output: sandbox.path.appending("output"))
        let status = probe.wait()
        let told = try probe.readOutput()
        try #require(status == 0, "\(told)")
        return try #require(Int(told.dropLast()), "\(told)")
    }

    /// The place of the vault, on a disk that counts the bytes that are read.
    private func location(in sandbox: Sandbox, counting read: Counter) throws -> VaultLocation {
        VaultLocation(
            directory: CountingDirectory(try PosixDirectory(sandbox.vault.removingLastComponent()), read),
            name: "test.vault",
            state: try PosixDirectory(try #require(sandbox.configuration.stateDirectory)), path: sandbox.vault
        )
    }

    /// Any program that may write a copy can make the copy as long as any file, at no cost.
    @Test func holesAreNotRead() throws {
        let sandbox = try Sandbox()
        try sandbox.made().close()
        try #require(truncate(sandbox.vault.string, 1 << 42) == 0)
        let read = Counter()
        let configuration = sandbox.configuration
        let location = try location(in: sandbox, counting: read)
        let vault = try BlockingFileVault.open(at: location, configuration: configuration)
        try vault.unlock(with: keyFile)
        #expect(try vault.storage(service: "s").retrieve(for: "a") == "first a")
        #expect(try vault.verify().isClean)
        vault.close()
        let copy = try VaultCopy.open(at: location, configuration: configuration)
        try copy.unlock(with: keyFile)
        #expect(try copy.verify().isClean)
        #expect(read.count.withLock { $0 } < 64 << 20)
    }

    @Test func whatACrashLeftIsLookedAtAPieceAtATime() throws {
        let sandbox = try Sandbox()
        try sandbox.made().close()
        let plain = try peak(sandbox, out: "first.vault")
        // The beginning of a write, and its end far behind. The hole between them takes no room on the disk.
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        let bytes = try sandbox.bytes()
        let end = (try #require(bytes.lastIndex { $0 != 0 }) + 8) / 8 * 8
        try file.write([UInt8](repeating: 0xa5, count: 40), at: end)
        try file.write([0xa5], at: end + (64 << 20))
        let torn = try peak(sandbox, out: "second.vault")
        #expect(torn < plain + (24 << 10), "\(torn) KiB with the tail, \(plain) KiB without")
        #expect(try values(in: try sandbox.opened()).count == 3)
    }

    /// A write that a crash cut short, and a hole behind it that no disk could hold.
    @Test func aHoleBehindATornWriteStaysAHole() throws {
        let sandbox = try Sandbox()
        try sandbox.made().close()
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        let file = try directory.open("test.vault", .readWrite)
        let end = (try #require(try sandbox.bytes().lastIndex { $0 != 0 }) + 8) / 8 * 8
        try file.write([UInt8](repeating: 0xa5, count: 40), at: end)
        try file.write([0xa5], at: 1 << 41)
        try #require(truncate(sandbox.vault.string, 1 << 42) == 0)
        let read = Counter()
        let configuration = sandbox.configuration
        let location = try location(in: sandbox, counting: read)
        let vault = try BlockingFileVault.open(at: location, configuration: configuration)
        defer { vault.close() }
        try vault.unlock(with: keyFile)
        try vault.storage(service: "s").store(token: "fake late", for: "late")
        #expect(try vault.storage(service: "s").retrieve(for: "late") == "fake late")
        #expect(read.count.withLock { $0 } < 64 << 20)
        let torn = try directory.open("test.vault.torn", .read)
        #expect(try torn.read(40, at: 0) == [UInt8](repeating: 0xa5, count: 40))
        // Neither file got bytes that the hole does not have.
        let copy = try VaultCopy.open(at: location, configuration: configuration)
        defer { copy.close() }
        let existing = try #require(try ExistingFile(at: location))
        #expect(try existing.isIdentical(to: file))
        #expect(read.count.withLock { $0 } < 128 << 20)
    }

    /// Each of them is looked at, and not the hole around it.
    @Test func singleBytesFarApartCostLittle() throws {
        let sandbox = try Sandbox()
        try sandbox.made().close()
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        let file = try directory.open("test.vault", .readWrite)
        let count = 1_000
        for number in 1...count { try file.write([1], at: number * 50_000_000) }
        let read = Counter()
        let configuration = sandbox.configuration
        let location = try location(in: sandbox, counting: read)
        let vault = try BlockingFileVault.open(at: location, configuration: configuration)
        defer { vault.close() }
        try vault.unlock(with: keyFile)
        #expect(try vault.storage(service: "s").retrieve(for: "a") == "first a")
        #expect(read.count.withLock { $0 } < count * (512 << 10))
    }

    /// What was kept of a write that a crash cut short may have the value that is deleted.
    @Test func aDeletionRemovesTheKeptTail() throws {
        let sandbox = try Sandbox()
        let vault = try sandbox.made()
        // The value is large, so deleting appends to the log rather than compacting it.
        try vault.storage(service: "s").store(Secret([UInt8](repeating: 1, count: 1 << 20)), for: "large")
        vault.close()
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        let bytes = try sandbox.bytes()
        let end = try #require(frames(of: bytes).last).upperBound
        try directory.open("test.vault", .readWrite).write([UInt8](repeating: 0xa5, count: 40), at: end)
        let storage = try sandbox.opened().storage(service: "s")
        try storage.store(token: "fake late", for: "late")
        #expect(try directory.names().contains("test.vault.torn"))
        #expect(try storage.delete(for: "late"))
        #expect(try !directory.names().contains("test.vault.torn"))
        #expect(try sandbox.bytes().count > 1 << 20)
    }

    /// The size of a file may be any number.
    @Test func theLongestFileIsSearched() throws {
        let sandbox = try Sandbox()
        let vault = try sandbox.made()
        defer { vault.close() }
        let base = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .read)
        var finder = try FrameFinder(file: LongFile(base), codec: try vault.session().log.codec)
        var frames = 0
        try finder.forEach { if case .frame = $0 { frames += 1 } }
        #expect(frames > 2)
    }
}

/// A file of the greatest size, with the bytes of another one and a hole behind them.
private final class LongFile: ForwardingFile {
    let base: any DiskFile

    init(_ base: any DiskFile) { self.base = base }

    func attributes() throws(SystemFailure) -> FileAttributes {
        var attributes = try base.attributes()
        attributes.size = .max
        return attributes
    }
}

private final class Counter: Sendable { let count = Mutex(0) }

/// Counts the bytes that are read of its files.
private final class CountingDirectory: ForwardingDirectory {
    let base: any DiskDirectory
    private let read: Counter

    init(_ base: any DiskDirectory, _ read: Counter) {
        self.base = base
        self.read = read
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        CountingFile(try base.open(name, access), read)
    }
}

private final class CountingFile: ForwardingFile {
    let base: any DiskFile
    private let read: Counter

    init(_ base: any DiskFile, _ read: Counter) {
        self.base = base
        self.read = read
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        let bytes = try base.read(count, at: offset)
        read.count.withLock { $0 += bytes.count }
        return bytes
    }
}
