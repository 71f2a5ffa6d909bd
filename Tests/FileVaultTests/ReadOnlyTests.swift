import HookedStorage
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// Vaults that are opened for reading only, by wish or since nothing else is possible.
@Suite struct ReadOnlyTests {
    private let sandbox: Sandbox
    private let writer: BlockingFileVault

    init() throws {
        sandbox = try Sandbox()
        writer = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        try writer.storage(service: "s").store(token: "fake", for: "key", policy: .whenUnlocked)
    }

    private func code(_ body: () throws -> Void) -> TokenStorageError.Code? {
        do { try body() } catch { return (error as? TokenStorageError)?.code }
        return nil
    }

    private func guarded(_ refusal: Errno? = nil) throws -> GuardedDirectory {
        try GuardedDirectory(sandbox.vault.removingLastComponent(), refusal: refusal)
    }

    private func opened(_ directory: any DiskDirectory, asked: Bool = true) throws -> BlockingFileVault {
        var configuration = sandbox.configuration
        configuration.isReadOnly = asked
        let vault = try BlockingFileVault.open(
            at: VaultLocation(
                directory: directory, name: "test.vault",
                state: try PosixDirectory(sandbox.path.appending("state")), path: sandbox.vault),
            configuration: configuration)
        try vault.unlock(with: keyFile)
        return vault
    }

    private func bytes() throws -> [UInt8] {
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .read)
        return try file.read(try file.attributes().size, at: 0)
    }

    @Test func nothingIsLockedOrWritten() throws {
        let directory = try guarded()
        let vault = try opened(directory)
        let storage = vault.storage(service: "s")
        #expect(try storage.retrieve(for: "key") == "fake")
        #expect(try storage.list().items.count == 1)
        #expect(try vault.verify().isClean)
        let status = try vault.status()
        #expect(status.readOnlyReason == .requested && status.items == 1 && !status.notes.isEmpty)
        #expect(status.rollbackProtection == .anchored)
        let copy = sandbox.path.appending("copy.export")
        _ = try vault.export(
            to: copy, passphrase: Secret(utf8: "fake words"))
        #expect(try SmallFile.exists(copy))
        #expect(directory.journal.all == [])
        #expect(code { try storage.store(token: "x", for: "key") } == .readOnly)
        #expect(code { try storage.delete(for: "key") } == .readOnly)
        #expect(code { _ = try vault.compact() } == .readOnly)
        #expect(
            code { _ = try vault.addSlot(.keyFile(Secret(utf8: String(repeating: "f", count: 40)))) }
                == .readOnly)
        #expect(directory.journal.all == [])
        do {
            try storage.store(token: "x", for: "key")
        } catch {
            #expect(error.underlying == "the vault was opened for reading only" && error.advice != nil)
        }
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test(arguments: [
        (Errno.readOnlyFileSystem, ReadOnlyReason.fileSystem), (.permissionDenied, .permissions),
    ])
    func whatCannotBeWrittenIsOpenedForReading(_ refusal: Errno, _ obstacle: ReadOnlyReason) throws {
        let directory = try guarded(refusal)
        let vault = try opened(directory, asked: false)
        #expect(try vault.status().readOnlyReason == obstacle)
        #expect(try vault.storage(service: "s").retrieve(for: "key") == "fake")
        #expect(code { try vault.storage(service: "s").store(token: "x", for: "key") } == .readOnly)
        #expect(directory.journal.all == [])
    }

    @Test func whatOthersWriteAndMoveIsSeen() throws {
        let storage = try opened(try guarded()).storage(service: "s")
        for round in 0..<20 {
            try writer.storage(service: "s").store(
                token: "fake \(round)", for: "key", policy: .whenUnlocked)
            if round.isMultiple(of: 2) { _ = try writer.compact() }
            #expect(try storage.retrieve(for: "key") == "fake \(round)")
        }
    }

    /// Readers without a lock in the middle of writes and moves.
    @Test func writesUnderWayAreNoDamage() throws {
        let thread = WorkerThread(name: "writer")
        let isOver = Monitor(false)
        let failure = Mutex<String?>(nil)
        let writer = writer
        thread.run {
            do {
                for round in 0..<60 {
                    try writer.storage(service: "s").store(
                        token: String(repeating: "x", count: 3_000), for: "key", policy: .whenUnlocked)
                    if round.isMultiple(of: 10) { _ = try writer.compact() }
                }
            } catch {
                failure.withLock { $0 = "\(error)" }
            }
            isOver.announce { $0 = true }
        }
        while !isOver.withLock({ $0 }) {
            let vault = try opened(try guarded())
            #expect(try vault.storage(service: "s").retrieve(for: "key") != nil)
            let report = try vault.verify()
            #expect(report.isClean, "\(report.problems)")
        }
        #expect(failure.withLock { $0 } == nil)
    }

    /// A store between any two reads of a look is no damage, however many looks that takes.
    @Test func storesBetweenTheReadsOfALookAreNoDamage() throws {
        let storage = writer.storage(service: "s")
        let left = Mutex(150)
        let directory = WatchedDirectory(
            base: try PosixDirectory(sandbox.vault.removingLastComponent()),
            beforeReading: {
                let isOver = left.withLock { left in
                    left -= 1
                    return left < 0
                }
                if !isOver { _ = try? storage.store(token: "fake", for: "key", policy: .whenUnlocked) }
            }, whenAskedForWriters: {})
        let vault = try opened(directory)
        let report = try vault.verify()
        #expect(report.isClean, "\(report.problems)")
        #expect(left.withLock { $0 } < 0)
    }

    /// While a writer has the lock, what does not fit together is its work. It takes longer than a reader looks at damage.
    @Test func whatIsHalfWrittenUnderTheLockIsNoDamage() throws {
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        writer.close()
        let end = try #require(try bytes().lastIndex { $0 != 0 })
        // A byte in the middle of the last frame's contents.
        let place = end - 200
        let file = try directory.open("test.vault", .readWrite)
        let byte = try file.read(1, at: place)
        for isVerified in [true, false] {
            #expect(try file.tryLock(.exclusive))
            try file.write([byte[0] ^ 1], at: place)
            let questions = Mutex(0)
            let watched = WatchedDirectory(
                base: directory, beforeReading: {},
                whenAskedForWriters: {
                    let count = questions.withLock { count in
                        count += 1
                        return count
                    }
                    guard count == 25 else { return }
                    try? file.write(byte, at: place)
                    file.unlock()
                })
            let vault = try opened(watched)
            if isVerified {
                #expect(try vault.verify().isClean)
            } else {
                #expect(try vault.storage(service: "s").retrieve(for: "key") == "fake")
            }
            #expect(questions.withLock { $0 } >= 25)
        }
        try file.write([byte[0] ^ 1], at: place)
        #expect(code { _ = try opened(try guarded()) } == .corrupt)
    }

    @Test func whatACrashLeftStaysWhereItIs() throws {
        writer.close()
        let before = try bytes()
        // Bytes behind the last frame look like a write that was cut off.
        let end = try #require(before.lastIndex { $0 != 0 }) + 1
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open(
            "test.vault", .readWrite)
        try file.write([UInt8](repeating: 0xa5, count: 40), at: (end + 7) / 8 * 8)
        let torn = try bytes()
        let vault = try opened(try guarded())
        #expect(try vault.storage(service: "s").retrieve(for: "key") == "fake")
        #expect(try bytes() == torn)
    }

    @Test func nothingIsMadeForReadingOnly() throws {
        var configuration = sandbox.configuration
        configuration.isReadOnly = true
        let path = sandbox.path.appending("new/other.vault")
        #expect(
            code {
                _ = try BlockingFileVault.create(
                    at: path, unlockMethod: keyFile, configuration: configuration)
            } == .readOnly)
        #expect(
            code { try BlockingFileVault.destroy(at: sandbox.vault, configuration: configuration) }
                == .readOnly)
        let copy = try VaultCopy.open(at: sandbox.vault, configuration: configuration)
        try copy.unlock(with: keyFile)
        let before = try bytes()
        #expect(code { _ = try copy.restore(to: sandbox.vault) } == .readOnly)
        #expect(code { _ = try copy.adopt() } == .readOnly)
        #expect(try bytes() == before)
        #expect(try !SmallFile.exists(sandbox.path.appending("new")))
    }
}

/// A directory that tells of reads of its files, and of questions for writers.
private final class WatchedDirectory: ForwardingDirectory {
    let base: any DiskDirectory
    private let beforeReading: @Sendable () -> Void
    private let whenAskedForWriters: @Sendable () -> Void

    init(
        base: any DiskDirectory, beforeReading: @escaping @Sendable () -> Void,
        whenAskedForWriters: @escaping @Sendable () -> Void
    ) {
        self.base = base
        self.beforeReading = beforeReading
        self.whenAskedForWriters = whenAskedForWriters
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        WatchedFile(
            base: try base.open(name, access), beforeReading: beforeReading,
            whenAskedForWriters: whenAskedForWriters)
    }
}

private final class WatchedFile: ForwardingFile {
    let base: any DiskFile
    private let beforeReading: @Sendable () -> Void
    private let whenAskedForWriters: @Sendable () -> Void

    init(
        base: any DiskFile, beforeReading: @escaping @Sendable () -> Void,
        whenAskedForWriters: @escaping @Sendable () -> Void
    ) {
        self.base = base
        self.beforeReading = beforeReading
        self.whenAskedForWriters = whenAskedForWriters
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        beforeReading()
        return try base.read(count, at: offset)
    }

    var isLockedForWriting: Bool {
        whenAskedForWriters()
        return base.isLockedForWriting
    }
}
