import Glibc
import SystemPackage
import Testing
import TokenVault

/// A directory of its own for a test's vault and state, removed when the test ends.
final class Sandbox {
    let path: FilePath

    init() throws {
        var template = Array("/tmp/tokenvault-test-XXXXXX".utf8CString)
        let made = try #require(mkdtemp(&template))
        path = FilePath(platformString: made)
    }

    deinit { removeTree(path) }

    var vault: FilePath { path.appending("vaults/test.vault") }
    var configuration: FileVaultConfiguration {
        FileVaultConfiguration(
            stateDirectory: path.appending("state"), lockTimeout: .seconds(20),
            keyDerivationCost: .minimum)
    }
}

let keyFile = UnlockMethod.keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))

@Suite struct FileVaultTests {
    @Test func whatIsStoredIsThereAfterReopening() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = vault.storage(service: "com.example")
        let first = try storage.store(token: "fake-token-1", for: "access")
        let second = try storage.store(token: "fake-token-2", for: "access")
        #expect(second > first)
        try storage.store(token: "fake-refresh", for: "refresh")
        #expect(try storage.retrieve(for: "access") == "fake-token-2")
        #expect(try storage.delete(for: "refresh"))
        vault.close()

        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(throws: TokenStorageError.self) {
            try again.storage(service: "com.example").retrieve(for: "access")
        }
        try again.unlock(with: keyFile)
        #expect(try again.storage(service: "com.example").retrieve(for: "access") == "fake-token-2")
        #expect(try again.storage(service: "com.example").retrieve(for: "refresh") == nil)
        let report = try again.verify()
        #expect(report.isClean, "\(report)")
        #expect(try again.status().rollbackProtection == .anchored)
    }

    @Test func aWrongKeyIsRefused() throws {
        let sandbox = try Sandbox()
        _ = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        let error = #expect(throws: TokenStorageError.self) {
            try vault.unlock(with: .keyFile(Secret(utf8: "another key that is not real 0123456789")))
        }
        #expect(error?.code == .wrongPassphrase)
    }
}
