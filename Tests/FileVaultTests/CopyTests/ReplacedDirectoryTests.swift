import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// The directory of an open vault is moved away, and perhaps another put in its place.
@Suite struct ReplacedDirectoryTests {
    private let sandbox: Sandbox
    private let vault: BlockingFileVault
    private let path: FilePath
    private var away: FilePath { FilePath(path.removingLastComponent().string + ".away") }
    private let configuration: FileVaultConfiguration

    init() throws {
        sandbox = try Sandbox()
        path = sandbox.path.appending("inner").appending("moving.vault")
        configuration = sandbox.configuration
        vault = try BlockingFileVault.create(
            at: path, unlockMethod: keyFile, configuration: configuration)
        try vault.storage(service: "s").store(token: "first", for: "a")
        try #require(rename(path.removingLastComponent().string, away.string) == 0)
    }

    private func putCopy() throws {
        try #require(mkdir(path.removingLastComponent().string, 0o700) == 0)
        let bytes = try SmallFile.read(away.appending("moving.vault"), limit: 64 << 20).bytes
        try SmallFile.create(path, bytes)
    }

    @Test func nothingIsWrittenBesideTheVaultThatIsThere() throws {
        try putCopy()
        let before = try SmallFile.read(away.appending("moving.vault"), limit: 64 << 20).bytes
        let storage = vault.storage(service: "s")
        for call in [
            { try storage.store(token: "lost", for: "a") }, { try storage.delete(for: "a") },
            { _ = try storage.deleteAll() }, { _ = try vault.compact() },
            { _ = try vault.addSlot(.keyFile(Secret(utf8: "another unreal key 0123456789abcdef01234567"))) },
        ] as [() throws -> Void] {
            let error = #expect(throws: TokenStorageError.self) { try call() }
            #expect(
                error?.code == .unavailable && error?.underlying?.contains("moved") ?? false,
                "\(error as Any)")
        }
        #expect(try SmallFile.read(away.appending("moving.vault"), limit: 64 << 20).bytes == before)
        let fresh = try BlockingFileVault.open(at: path, configuration: configuration)
        try fresh.unlock(with: keyFile)
        #expect(try fresh.storage(service: "s").retrieve(for: "a") == "first")
    }

    /// It was looked at before the first byte, and moved before the last.
    @Test func whatWasWrittenWhileItMovedIsNotAcknowledged() throws {
        try #require(rename(away.string, path.removingLastComponent().string) == 0)
        let moves = Mutex(false)
        let directory = HookedDirectory(try PosixDirectory(path.removingLastComponent())) {
            [path, away] () throws(SystemFailure) in
            guard moves.withLock({ exchange(&$0, with: false) }) else { return }
            guard rename(path.removingLastComponent().string, away.string) == 0,
                mkdir(path.removingLastComponent().string, 0o700) == 0
            else { throw SystemFailure(.ioError, "rename") }
        }
        let moving = try BlockingFileVault.open(
            at: VaultLocation(
                directory: directory, name: "moving.vault",
                state: try PosixDirectory(try #require(configuration.stateDirectory)), path: path,
                absolutePath: path), configuration: configuration)
        try moving.unlock(with: keyFile)
        let storage = moving.storage(service: "s")
        try storage.store(token: "second", for: "a")
        moves.withLock { $0 = true }
        let error = #expect(throws: TokenStorageError.self) { try storage.store(token: "third", for: "a") }
        #expect(error?.code == .outcomeUnknown && error?.generation != nil, "\(error as Any)")
        #expect(error?.underlying?.contains("moved") ?? false)
        // Back in its place, the vault has either value and accepts writes.
        try #require(
            rmdir(path.removingLastComponent().string) == 0
                && rename(away.string, path.removingLastComponent().string) == 0)
        let fresh = try BlockingFileVault.open(at: path, configuration: configuration)
        try fresh.unlock(with: keyFile)
        #expect(["second", "third"].contains(try fresh.storage(service: "s").retrieve(for: "a")))
        try storage.store(token: "fourth", for: "a")
        #expect(try fresh.storage(service: "s").retrieve(for: "a") == "fourth")
    }

    /// Nothing is at the vault's path, so no program would find a write there. The vault refuses writes until
    /// it is opened at its new path.
    @Test func oneThatWasOnlyMovedIsOpenedAnew() throws {
        let error = #expect(throws: TokenStorageError.self) {
            try vault.storage(service: "s").store(token: "second", for: "a")
        }
        #expect(error?.code == .unavailable)
        let fresh = try BlockingFileVault.open(
            at: away.appending("moving.vault"), configuration: configuration)
        try fresh.unlock(with: keyFile)
        try fresh.storage(service: "s").store(token: "second", for: "a")
        // Back in its place, the first handle continues to work.
        try #require(rename(away.string, path.removingLastComponent().string) == 0)
        #expect(try vault.storage(service: "s").retrieve(for: "a") == "second")
        try vault.storage(service: "s").store(token: "third", for: "a")
    }

    /// A link in its place that leads to where it is by now is the same directory.
    @Test func aLinkToWhereItIsIsTheSame() throws {
        try #require(symlink(away.string, path.removingLastComponent().string) == 0)
        try vault.storage(service: "s").store(token: "second", for: "a")
        #expect(try vault.storage(service: "s").retrieve(for: "a") == "second")
    }
}
