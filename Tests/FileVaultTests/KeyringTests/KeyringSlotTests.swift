import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultCrypto

/// A key in the person's keyring as an unlock method.
@Suite struct KeyringSlotTests {
    private let sandbox: Sandbox
    private let keyring = MemoryKeyring()

    init() throws { sandbox = try Sandbox() }

    private func open(at path: FilePath? = nil) throws -> BlockingFileVault {
        try BlockingFileVault.open(at: path ?? sandbox.vault, configuration: sandbox.configuration)
    }
    private func made() throws -> BlockingFileVault {
        try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
    }
    private func code(_ body: () throws(TokenStorageError) -> Void) -> TokenStorageError.Code? {
        do {
            try body()
            return nil
        } catch { return error.code }
    }

    @Test func aLoginOpensTheVault() throws {
        let vault = try made()
        try vault.storage(service: "s").store(token: "fake", for: "k")
        let slot = try vault.addSlot(in: keyring)
        #expect(slot.kind == .secretService && slot.kind.rawValue == "secret-service" && slot.id == 2)
        #expect(keyring.keys.count == 1 && keyring.key(of: vault.identifier)?.count == 32)
        #expect(vault.identifier.wholeMatch(of: #/[0-9a-f]{32}/#) != nil)
        #expect(Array(keyring.labels.values) == ["TokenVault: key of test.vault"])

        let again = try open()
        #expect(
            try again.identifier == vault.identifier
                && again.slots().map(\.kind) == [.keyFile, .secretService])
        try again.unlock(from: keyring)
        #expect(try again.storage(service: "s").retrieve(for: "k") == "fake")
        #expect(try again.lockState() == .unlocked)
        // Like a key file, the slot opens everything except the passcode class.
        let storage = again.storage(service: "s")
        #expect(
            storage.supportedPolicies
                == Set(AccessPolicy.allCases).subtracting([.whenPasscodeSetThisDeviceOnly]))
        for policy in storage.supportedPolicies { try storage.store(token: "fake", for: "p", policy: policy) }
        again.lock()
        try again.unlock(from: keyring)
        // A second key would make the first slot useless.
        #expect(code { () throws(TokenStorageError) in _ = try again.addSlot(in: keyring) } == .alreadyExists)
        #expect(try again.slots().count == 2)
    }

    @Test func aVaultIsMadeWithTheKeyringAlone() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, keyring: keyring, configuration: sandbox.configuration)
        #expect(try vault.slots().map(\.kind) == [.secretService])
        try vault.storage(service: "s").store(token: "fake", for: "k")
        let again = try open()
        try again.unlock(from: keyring)
        #expect(try again.storage(service: "s").retrieve(for: "k") == "fake")
        let before = keyring.keys
        #expect(
            code { () throws(TokenStorageError) in
                _ = try BlockingFileVault.create(
                    at: sandbox.vault, keyring: keyring, configuration: sandbox.configuration)
            } == .alreadyExists)
        #expect(keyring.keys == before)
        #expect(try again.verify().isClean)
    }

    @Test(arguments: [TokenStorageError.Code.locked, .unavailable, .timedOut])
    func aKeyringThatFailsChangesNothing(_ reason: TokenStorageError.Code) throws {
        let vault = try made()
        keyring.fail(with: reason)
        #expect(code { () throws(TokenStorageError) in _ = try vault.addSlot(in: keyring) } == reason)
        #expect(try vault.slots().count == 1)
        let other = sandbox.path.appending("other.vault")
        #expect(
            code { () throws(TokenStorageError) in
                _ = try BlockingFileVault.create(
                    at: other, keyring: keyring, configuration: sandbox.configuration)
            } == reason)
        #expect(try !SmallFile.exists(other))
        keyring.fail(with: nil)
        _ = try vault.addSlot(in: keyring)
        keyring.fail(with: reason)
        let again = try open()
        #expect(code { () throws(TokenStorageError) in try again.unlock(from: keyring) } == reason)
        #expect(try again.lockState() == .locked)
        try again.unlock(with: keyFile)
    }

    @Test func aKeyringThatForgetsIsNotTrusted() throws {
        let vault = try made()
        keyring.forget()
        #expect(code { () throws(TokenStorageError) in _ = try vault.addSlot(in: keyring) } == .ioFailure)
        #expect(
            code { () throws(TokenStorageError) in
                _ = try BlockingFileVault.create(
                    at: sandbox.path.appending("other.vault"), keyring: keyring,
                    configuration: sandbox.configuration)
            } == .ioFailure)
        #expect(try vault.slots().count == 1 && !SmallFile.exists(sandbox.path.appending("other.vault")))
    }

    @Test func noKeyAndAWrongKeyAreToldApart() throws {
        let vault = try made()
        _ = try vault.addSlot(in: keyring)
        let again = try open()
        #expect(code { () throws(TokenStorageError) in try again.unlock(from: MemoryKeyring()) } == .locked)
        // A key of another form counts as no key.
        for (wrong, code) in [
            (Secret([UInt8](repeating: 0, count: 32)), TokenStorageError.Code.wrongPassphrase),
            (Secret([1, 2, 3]), .locked), (Secret([UInt8]()), .locked),
        ] {
            let other = MemoryKeyring()
            other.plant(wrong, vault: vault.identifier)
            #expect(self.code { () throws(TokenStorageError) in try again.unlock(from: other) } == code)
        }
        #expect(
            code { () throws(TokenStorageError) in
                try again.unlock(with: .secretService(Secret([UInt8](repeating: 0, count: 31))))
            } == .invalidArgument)
        // The same bytes as a key file open nothing, and a key file's bytes in the keyring open nothing
        // either.
        let key = try #require(keyring.key(of: vault.identifier))
        #expect(
            code { () throws(TokenStorageError) in try again.unlock(with: .keyFile(key)) } == .wrongPassphrase
        )
    }

    @Test func aKeyGoesWithItsSlotAndNotBefore() throws {
        let vault = try made()
        let slot = try vault.addSlot(in: keyring)
        #expect(try !vault.deleteUnusedKeys(in: keyring) && keyring.keys.count == 1)
        let before = keyring.keys
        try vault.removeSlot(slot.id)
        let again = try open()
        #expect(code { () throws(TokenStorageError) in try again.unlock(from: keyring) } == .wrongPassphrase)
        // A leftover key is not used again: an attacker may have put it there.
        _ = try vault.addSlot(in: keyring)
        #expect(keyring.keys.count == 2)
        try again.unlock(from: keyring)
        #expect(try vault.deleteUnusedKeys(in: keyring) && keyring.keys.count == 1 && keyring.keys != before)
        #expect(try !vault.deleteUnusedKeys(in: keyring))
    }

    /// What a copy no longer needs, the vault does.
    @Test func removingTheSlotOfACopyLeavesTheVaultItsKey() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, keyring: keyring, configuration: sandbox.configuration)
        let original = try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state"))
        try original.write(to: "copy.vault")
        // The vault now has another slot, and the keyring's key opens only the copy.
        _ = try vault.addSlot(keyFile)
        try vault.removeSlot(try vault.slots()[0].id)
        var reading = sandbox.configuration
        reading.allowsOpeningCopies = true
        let copy = try BlockingFileVault.open(
            at: sandbox.path.appending("vaults/copy.vault"), configuration: reading)
        try copy.unlock(from: keyring)
        _ = try vault.addSlot(in: keyring)
        #expect(try !copy.deleteUnusedKeys(in: keyring))
        try open().unlock(from: keyring)
    }

    /// An attacker that knows the key would open the vault, and every copy made later.
    @Test func aPlantedKeyBecomesNoSlot() throws {
        let vault = try made()
        let planted = Secret([UInt8](repeating: 7, count: 32))
        keyring.plant(planted, vault: vault.identifier)
        _ = try vault.addSlot(in: keyring)
        #expect(keyring.keys.count == 2)
        let again = try open()
        #expect(
            code { () throws(TokenStorageError) in try again.unlock(with: .secretService(planted)) }
                == .wrongPassphrase)
        try again.unlock(from: keyring)
    }

    /// Two programs may each see that there is none yet.
    @Test func ofTwoSlotsAtOnceEachIsOpened() throws {
        _ = try made()
        let vaults = try (0..<2).map { _ in
            let vault = try open()
            try vault.unlock(with: keyFile)
            return vault
        }
        let meeting = MeetingKeyring(keyring)
        let added = Monitor([Result<VaultSlot, TokenStorageError>]())
        let threads = vaults.indices.map { WorkerThread(name: "adder \($0)") }
        for (thread, vault) in zip(threads, vaults) {
            thread.run {
                let slot = Result { () throws(TokenStorageError) in try vault.addSlot(in: meeting) }
                added.announce { $0.append(slot) }
            }
        }
        let slots = added.wait { $0.count == 2 ? $0 : nil }.compactMap { try? $0.get() }
        #expect(!slots.isEmpty && keyring.keys.count == slots.count)
        // Without the key file and the other slots, the slot that is kept opens the vault.
        for kept in slots {
            let copy = sandbox.path.appending("vaults/kept-\(kept.id).vault")
            try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state")).write(
                to: "kept-\(kept.id).vault")
            // The configuration is that of another device.
            var elsewhere = sandbox.configuration
            elsewhere.stateDirectory = sandbox.path.appending("state of \(kept.id)")
            let vault = try BlockingFileVault.open(at: copy, configuration: elsewhere)
            try vault.unlock(with: keyFile)
            for slot in try vault.slots() where slot.id != kept.id { try vault.removeSlot(slot.id) }
            vault.close()
            try BlockingFileVault.open(at: copy, configuration: elsewhere).unlock(from: keyring)
        }
    }

    @Test func destroyingTakesTheKeyButNotFromTheOriginal() throws {
        let vault = try made()
        _ = try vault.addSlot(in: keyring)
        try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state")).write(to: "copy.vault")
        let copy = sandbox.path.appending("vaults/copy.vault")
        try BlockingFileVault.destroy(at: copy, configuration: sandbox.configuration, keyring: keyring)
        #expect(keyring.keys.count == 1)
        try open().unlock(from: keyring)
        keyring.fail(with: .locked)
        let error = #expect(throws: TokenStorageError.self) {
            try BlockingFileVault.destroy(
                at: sandbox.vault, configuration: sandbox.configuration, keyring: keyring)
        }
        #expect(error?.code == .locked && error?.advice?.contains("is removed") == true)
        #expect(try !SmallFile.exists(sandbox.vault))
        keyring.fail(with: nil)
        let second = try made()
        _ = try second.addSlot(in: keyring)
        try BlockingFileVault.destroy(
            at: sandbox.vault, configuration: sandbox.configuration, keyring: keyring)
        #expect(keyring.key(of: second.identifier) == nil)
    }

    @Test func theAsyncCallsDoTheSame() async throws {
        let vault = try await FileVault.create(
            at: sandbox.vault, keyring: keyring, configuration: sandbox.configuration)
        try await vault.storage(service: "s").store(token: "fake", for: "k")
        let again = try FileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try await again.run { [keyring] in try $0.unlock(from: keyring) }
        #expect(try await again.storage(service: "s").retrieve(for: "k") == "fake")
        let other = MemoryKeyring()
        #expect(try await again.run { try $0.addSlot(in: other) }.kind == .secretService)
        // Two desktops that share a vault have two keyrings, each with its own key.
        try await again.run { [keyring] in try $0.unlock(from: keyring) }
        try await again.run { try $0.unlock(from: other) }
    }

    /// The slot by the words of Format.md, with nothing but the digest of it.
    @Test func theSlotIsAsTheFormatSays() throws {
        let vault = try made()
        let added = try vault.addSlot(in: keyring)
        let key = try #require(keyring.key(of: vault.identifier)).unprotectedBytes()
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .read)
        let bytes = try file.read(8_192, at: 0)
        func integer(_ offset: Int, _ length: Int) -> Int {
            (0..<length).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
        let name = Array(bytes[16..<32])
        #expect(name.hexadecimal == vault.identifier && integer(44, 2) == 2)
        // Identifier 4, kind 1, scope 1, created 8, passes 4, memory 8, salt 16, commitment 32, length 2.
        let first = 46
        let start = first + 76 + integer(first + 74, 2)
        #expect(integer(start, 4) == added.id && bytes[start + 4] == 3 && bytes[start + 5] == 1)
        #expect(bytes[start + 14..<start + 26].allSatisfy { $0 == 0 })
        let salt = Array(bytes[start + 26..<start + 42])
        let commitment = Array(bytes[start + 42..<start + 74])
        func counted(_ bytes: [UInt8]) -> [UInt8] {
            (0..<8).map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
        }
        let slotKey = Hash.digest(
            counted(Array("tokenvault 1 secret service".utf8)) + counted(salt) + counted(key), length: 32)
        let keyed = try SymmetricKey(copying: SecretBytes(copying: slotKey))
        let expected = try #require(
            Hash.keyed(Array("tokenvault 1 slot commitment".utf8) + name + salt, key: keyed, length: 32))
        #expect(commitment == expected)
    }
}
