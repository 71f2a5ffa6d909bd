import HookedStorage
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultCore
@testable import TokenVaultFile

/// How often the files of a vault are opened.
@Suite struct OpenedFilesTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        try vault.storage(service: "s").store(token: "fake", for: "k")
        vault.close()
    }

    private func location(_ journal: CountingDirectory.Journal) throws -> VaultLocation {
        let real = try VaultLocation.real(
            sandbox.vault, configuration: sandbox.configuration, creating: false)
        return VaultLocation(
            directory: CountingDirectory(real.directory, journal), name: real.name,
            state: real.state.map { CountingDirectory($0, journal) }, path: real.path,
            absolutePath: real.absolutePath)
    }

    /// What one process opens twice may be two files. This is all that `vaultctl retrieve` does.
    @Test func aRetrievalOpensNoFileTwice() throws {
        let journal = CountingDirectory.Journal()
        let vault = try BlockingFileVault.open(
            at: try location(journal), configuration: sandbox.configuration)
        #expect(try vault.slots().count == 1)
        try vault.unlock(with: keyFile)
        #expect(try vault.storage(service: "s").retrieve(for: "k") == "fake")
        let opened = journal.names.withLock { $0 }
        #expect(opened.contains(sandbox.vault.lastComponent?.string ?? "") && opened.count > 2, "\(opened)")
        #expect(Set(opened).count == opened.count, "\(opened)")
    }

    /// Slots that another process changed since the vault was opened count, and a file that took its place is opened.
    @Test func whatWasChangedSinceTheVaultWasOpenedCounts() throws {
        let early = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        let late = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try other.unlock(with: keyFile)
        let new = UnlockMethod.keyFile(Secret(utf8: "another unreal key of thirty-two bytes"))
        _ = try other.addSlot(new, scope: .all)
        try early.unlock(with: new)
        #expect(try early.slots().count == 2)
        _ = try other.rotateKeys(keeping: [new], removing: [1])
        #expect(throws: TokenStorageError.self) { try late.unlock(with: keyFile) }
        try late.unlock(with: new)
        #expect(try late.storage(service: "s").retrieve(for: "k") == "fake")
    }

    /// Where other machines write, what is open may not show it.
    @Test(arguments: [false, true]) func onlyALocalFileIsKept(isRemote: Bool) throws {
        var configuration = sandbox.configuration
        configuration.isReadOnly = true
        let directory = try GuardedDirectory(
            sandbox.vault.removingLastComponent(), isRemote: isRemote)
        let vault = try BlockingFileVault.open(
            at: VaultLocation(
                directory: directory, name: sandbox.vault.lastComponent?.string ?? "", state: nil,
                path: sandbox.vault),
            configuration: configuration)
        #expect(vault.state.withLock { $0.opened != nil } == !isRemote)
        try vault.unlock(with: keyFile)
        #expect(vault.state.withLock { $0.opened == nil })
    }
}

/// A directory that keeps the names of the files that are opened in it.
private final class CountingDirectory: ForwardingDirectory {
    final class Journal: Sendable {
        let names = Mutex<[String]>([])
    }

    let base: any DiskDirectory
    private let journal: Journal

    init(_ base: any DiskDirectory, _ journal: Journal) {
        self.base = base
        self.journal = journal
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        let file = try base.open(name, access)
        journal.names.withLock { $0.append(name) }
        return file
    }
}
