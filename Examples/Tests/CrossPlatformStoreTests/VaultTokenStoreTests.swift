#if canImport(TokenVault)
import CrossPlatformStore
import Foundation
import Testing
import TokenVault

/// What the SDK expects of its store on each platform, over TokenVault.
@Suite struct VaultTokenStoreTests {
    private let vault = InMemoryVault()
    private var storage: InMemoryTokenStorage { vault.storage(service: "com.example.auth") }
    private var store: any AuthTokenStore { VaultTokenStore(storage) }

    @Test func aTokenIsStoredReplacedAndDeleted() async throws {
        #expect(try await store.retrieve(for: "ada") == nil)
        try await store.store("fake", for: "ada")
        try await store.store("fake 2", for: "ada")
        #expect(try await store.retrieve(for: "ada") == "fake 2")
        #expect(try await store.retrieve(for: "grace") == nil)
        try await store.delete(for: "ada")
        try await store.delete(for: "ada")
        #expect(try await store.retrieve(for: "ada") == nil)
    }

    @Test(arguments: [LockState.locked, .afterFirstUnlock])
    func lockedIsNotAbsent(_ state: LockState) async throws {
        try await store.store("fake", for: "ada")
        vault.setLockState(state)
        await #expect(throws: AuthTokenStoreError.locked) { try await store.retrieve(for: "ada") }
        await #expect(throws: AuthTokenStoreError.locked) { try await store.store("fake 2", for: "ada") }
        await #expect(throws: AuthTokenStoreError.locked) { try await store.delete(for: "ada") }
        vault.setLockState(.unlocked)
        #expect(try await store.retrieve(for: "ada") == "fake")
    }

    @Test func aStoreThatWasNeverUnlockedIsLocked() async {
        vault.setLockState(.locked)
        await #expect(throws: AuthTokenStoreError.locked) { try await store.retrieve(for: "ada") }
    }

    @Test func anotherFailureIsNeitherAbsentNorLocked() async throws {
        try await storage.store(Secret([0xff] as [UInt8]), for: "ada")
        let notText = await #expect(throws: AuthTokenStoreError.self) {
            try await store.retrieve(for: "ada")
        }
        #expect(notText != .locked)
        vault.close()
        let closed = await #expect(throws: AuthTokenStoreError.self) {
            try await store.retrieve(for: "ada")
        }
        #expect(closed != .locked)
    }

    @Test func aTokenStaysOnThisDevice() async throws {
        try await store.store("fake", for: "ada")
        #expect(try await storage.metadata(for: "ada")?.policy == .whenUnlockedThisDeviceOnly)
        vault.setDevice(.another)
        let read = await #expect(throws: AuthTokenStoreError.self) {
            try await store.retrieve(for: "ada")
        }
        #expect(read != .locked)
        // A storage that cannot keep the policy stores nothing under a weaker one.
        await #expect(throws: AuthTokenStoreError.self) { try await store.store("fake", for: "grace") }
        #expect(try await storage.contains(for: "grace") == false)
    }

    @Test func aVaultIsMadeOnceAndOpenedAgain() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("tokenvault-example-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: directory) }
        let keyFile = directory.appendingPathComponent("key")
        let vaultFile = directory.appendingPathComponent("data/tokens.vault")
        let state = directory.appendingPathComponent("state")
        func opened() async throws -> any AuthTokenStore {
            try await VaultTokenStore.open(
                service: "com.example.auth", vault: FilePath(vaultFile.path),
                stateDirectory: FilePath(state.path), keyFile: FilePath(keyFile.path))
        }

        let key = Data("not a real key: 0123456789abcdef0123456789abcdef".utf8)
        try key.write(to: keyFile)
        try await opened().store("fake", for: "ada")
        #expect(try await opened().retrieve(for: "ada") == "fake")

        try Data("another key, not real: 0123456789abcdef0123456789".utf8).write(to: keyFile)
        await #expect(throws: AuthTokenStoreError.self) { try await opened() }
        try key.write(to: keyFile)
        #expect(try await opened().retrieve(for: "ada") == "fake")

        // A missing vault is an error: the store does not create the vault again.
        try FileManager.default.removeItem(at: vaultFile)
        await #expect(throws: AuthTokenStoreError.self) { try await opened() }
        #expect(!FileManager.default.fileExists(atPath: vaultFile.path))
    }
}
#endif
