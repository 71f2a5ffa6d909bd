import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// Vaults where other machines may write: as the real disk, but for what it says of itself.
@Suite struct RemoteFileSystemTests {
    private let sandbox: Sandbox
    private let directory: GuardedDirectory
    private let vault: BlockingFileVault

    init() throws {
        sandbox = try Sandbox()
        var configuration = sandbox.configuration
        let other = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: configuration)
        try other.storage(service: "s").store(token: "fake", for: "key", policy: .whenUnlocked)
        other.close()
        directory = try GuardedDirectory(sandbox.vault.removingLastComponent(), isRemote: true)
        configuration.lockTimeout = .milliseconds(50)
        vault = try BlockingFileVault.open(
            at: VaultLocation(directory: directory, name: "test.vault", state: nil, path: sandbox.vault),
            configuration: configuration)
        try vault.unlock(with: keyFile)
    }

    private func code(_ body: () throws -> Void) -> TokenStorageError.Code? {
        do { try body() } catch { return (error as? TokenStorageError)?.code }
        return nil
    }

    @Test func readersTakeTheLockAndLetGoOfIt() throws {
        directory.journal.forget()
        #expect(try vault.storage(service: "s").retrieve(for: "key") == "fake")
        #expect(directory.journal.all.contains("shared"))
        #expect(!directory.journal.all.contains("exclusive"))
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open(
            "test.vault", .readWrite)
        #expect(try file.tryLock(.exclusive))
        #expect(code { _ = try vault.storage(service: "s").retrieve(for: "key") } == .timedOut)
        file.unlock()
        #expect(try vault.storage(service: "s").retrieve(for: "key") == "fake")
    }

    @Test func whatThisAndOthersWriteIsSeen() throws {
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try other.unlock(with: keyFile)
        let (own, theirs) = (vault.storage(service: "s"), other.storage(service: "s"))
        for round in 0..<10 {
            try theirs.store(token: "fake \(round)", for: "key", policy: .whenUnlocked)
            if round.isMultiple(of: 2) { _ = try other.compact() }
            #expect(try own.retrieve(for: "key") == "fake \(round)")
            try own.store(token: "fake", for: "own", policy: .whenUnlocked)
            #expect(try theirs.retrieve(for: "own") == "fake")
            if round.isMultiple(of: 3) { #expect(try own.delete(for: "own")) }
        }
        _ = try vault.compact()
        #expect(try vault.verify().isClean)
        #expect(try vault.status().notes.contains { $0.contains("network file system") })
    }

    @Test func readsThatMayWaitLeaveTheCallersThread() async throws {
        let storage = FileTokenStorage(vault, service: "s")
        directory.journal.forget()
        let caller = ProcessFacts.thread
        #expect(try await storage.retrieve(for: "key") == "fake")
        #expect(directory.journal.readingThreads.count == 1)
        #expect(!directory.journal.readingThreads.contains(caller))
    }

    @Test(arguments: [Errno.noLocks, .notSupportedOnSocket, .noFunction])
    func whereNoLocksAreTheVaultIsOpenedForReadingOnly(_ failure: Errno) throws {
        let directory = try GuardedDirectory(
            sandbox.vault.removingLastComponent(), isRemote: true, lockFailure: failure)
        let location = VaultLocation(
            directory: directory, name: "test.vault", state: nil, path: sandbox.vault)
        do {
            _ = try BlockingFileVault.open(at: location, configuration: sandbox.configuration)
            Issue.record("the vault was opened")
        } catch {
            #expect(error.code == .unavailable && error.underlying?.contains("locks") == true)
            #expect(error.advice?.contains("reading only") == true)
        }
        var configuration = sandbox.configuration
        configuration.isReadOnly = true
        let vault = try BlockingFileVault.open(at: location, configuration: configuration)
        try vault.unlock(with: keyFile)
        #expect(try vault.storage(service: "s").retrieve(for: "key") == "fake")
    }

    @Test func kindsAreToldApart() {
        for type: UInt64 in [
            0x6969, 0x6573_5546, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0xffff_ffff_ff53_4d42,
        ] {
            #expect(FileSystemKind.isRemote(type) && !FileSystemKind.tellsEveryChange(type), "\(type)")
        }
        // ext4, btrfs, xfs, tmpfs.
        for type: UInt64 in [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994] {
            #expect(!FileSystemKind.isRemote(type) && FileSystemKind.tellsEveryChange(type), "\(type)")
        }
        #expect(!FileSystemKind.isRemote(0x794c_7630) && !FileSystemKind.tellsEveryChange(0x794c_7630))
        #expect(!FileSystemKind.tellsEveryChange(0))
    }
}
