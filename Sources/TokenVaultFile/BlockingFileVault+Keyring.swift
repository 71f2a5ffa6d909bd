internal import Synchronization
public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

// A key in the user's keyring as an unlock method: a login opens the vault, without a passphrase.
extension BlockingFileVault {
    /// Creates a vault at `path` that a fresh key in `keyring` opens, and returns it unlocked. Add another
    /// slot: if the keyring is lost, the vault's items are lost with it. Throws as
    /// ``create(at:unlockMethod:configuration:)``, and the errors of `keyring`.
    public static func create(
        at path: FilePath, keyring: any KeyringItems, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault {
        try during("create") { () throws(TokenStorageError) in
            let creation = VaultCreation(
                location: try VaultLocation.real(path, configuration: configuration, creating: true),
                configuration: configuration)
            try creation.refuseExisting()
            // The key is stored before the vault that only this key opens.
            let identifier = creation.vault.hexadecimal
            let (name, key) = try freshKey(in: keyring, vault: identifier, of: creation.location.name)
            do throws(TokenStorageError) {
                return try create(creation, .secretService(key))
            } catch {
                // A vault that exists in spite of the error needs the key.
                if case .some = try? creation.refuseExisting() {
                    _ = try? keyring.delete(vault: identifier, name: name)
                }
                throw error
            }
        }
    }

    /// Unlocks with a key that `keyring` keeps for this vault. Throws `locked` when the keyring keeps none
    /// and `wrongPassphrase` when no key opens a slot. Also throws the errors of `keyring`, and as
    /// ``unlock(with:repairing:)``.
    public func unlock(from keyring: any KeyringItems, repairing: Bool = true) throws(TokenStorageError) {
        try during("unlock") { () throws(TokenStorageError) in
            let keys = try usableKeys(in: keyring)
            guard !keys.isEmpty else {
                throw .file(.locked, .slots(.keyringHasNoKey))
            }
            for (_, key) in keys {
                do throws(TokenStorageError) {
                    return try unlock(with: .secretService(key), repairing: repairing)
                } catch {
                    // The key is another program's, or another copy's of the vault.
                    guard error.code == .wrongPassphrase else { throw error }
                }
            }
            throw .file(.wrongPassphrase)
        }
    }

    /// Adds a slot that a fresh key in `keyring` opens, and returns the slot. Its scope is decided as by
    /// ``addSlot(_:scope:)``. The vault must be unlocked (`locked`). Throws `alreadyExists` when the keyring
    /// opens the vault already, and `ioFailure` when the keyring does not return the stored key. Also throws
    /// the errors of `keyring`, and as ``addSlot(_:scope:)``.
    ///
    /// A key in the keyring that opens no slot is kept: it may be another copy's or another program's.
    public func addSlot(
        in keyring: any KeyringItems, scope: VaultSlot.Scope? = nil
    ) throws(TokenStorageError) -> VaultSlot {
        try during("slot add") { () throws(TokenStorageError) in
            guard try session().ring.roots != nil else { throw .file(.locked) }
            for (_, key) in try usableKeys(in: keyring) where try opensSlot(key) {
                throw .file(.alreadyExists, .exists(.keyringSlot))
            }
            let (name, key) = try Self.freshKey(in: keyring, vault: identifier, of: location.name)
            do throws(TokenStorageError) {
                return try addSlot(.secretService(key), scope: scope)
            } catch {
                // Nothing depends on the key, unless it may have become a slot.
                if error.code != .outcomeUnknown { _ = try? keyring.delete(vault: identifier, name: name) }
                throw error
            }
        }
    }

    /// Deletes the keys that `keyring` keeps for this vault and that open no slot; returns whether there were
    /// any. Call it after ``removeSlot(_:)``. In a copy of a vault that this device knows at another path,
    /// nothing is deleted: the vault may need the keys. The vault must have been unlocked once (`locked`).
    /// Throws the errors of `keyring`.
    @discardableResult
    public func deleteUnusedKeys(in keyring: any KeyringItems) throws(TokenStorageError) -> Bool {
        try during("slot remove") { () throws(TokenStorageError) in
            _ = try session()
            if try isCopy() { return false }
            var isDeleted = false
            for (name, key) in try keyring.keys(vault: identifier) where try !opensSlot(key) {
                if try keyring.delete(vault: identifier, name: name) { isDeleted = true }
            }
            return isDeleted
        }
    }

    /// Returns the keys of `keyring` that open a slot. Throws as ``deleteUnusedKeys(in:)``.
    package func openingKeys(in keyring: any KeyringItems) throws(TokenStorageError) -> [Secret] {
        var keys: [Secret] = []
        for (_, key) in try usableKeys(in: keyring) where try opensSlot(key) { keys.append(key) }
        return keys
    }

    /// Returns the keys with the length of a keyring's key, those that open a slot of the first-read keybag
    /// first. Returns at most as many as a vault has slots: any program of the user can add others.
    private func usableKeys(
        in keyring: any KeyringItems
    ) throws(TokenStorageError) -> [(name: String, key: Secret)] {
        let keys = try keyring.keys(vault: identifier)
            .filter { $0.value.count == UnlockMethod.keyringKeyLength }
            .sorted { $0.key < $1.key }.map { (name: $0.key, key: $0.value) }
        let keybag = state.withLock { $0.keybag }
        let (first, others) = (
            keys.filter { (try? KeybagKeys.openSlot(of: keybag, with: .secretService($0.key))) != nil },
            keys.filter { (try? KeybagKeys.openSlot(of: keybag, with: .secretService($0.key))) == nil }
        )
        return Array((first + others).prefix(Keybag.maximumSlots))
    }

    private func opensSlot(_ key: Secret) throws(TokenStorageError) -> Bool {
        let keybag = try currentKeybag(try session())
        do {
            _ = try KeybagKeys.openSlot(of: keybag, with: .secretService(key))
            return true
        } catch {
            if case .noSlot = error { return false }
            throw KeybagKeys.error(for: error)
        }
    }

    /// Returns a new key and its name in `keyring`, which stores the key and gives it back.
    private static func freshKey(
        in keyring: any KeyringItems, vault: String, of file: String
    ) throws(TokenStorageError) -> (name: String, key: Secret) {
        var bytes = Random.bytes(UnlockMethod.keyringKeyLength)
        defer { SmallFile.wipe(&bytes) }
        let key = Secret(bytes)
        let name = Random.bytes(8).hexadecimal
        try keyring.add(key, vault: vault, name: name, label: "TokenVault: key of \(file)")
        guard try keyring.keys(vault: vault)[name] == key else {
            throw .file(.ioFailure, .slots(.keyringGivesOtherKey))
        }
        return (name, key)
    }
}

extension FileVault {
    /// Creates a vault whose key is in `keyring`, as ``BlockingFileVault/create(at:keyring:configuration:)``.
    public static func create(
        at path: FilePath, keyring: any KeyringItems, configuration: FileVaultConfiguration
    ) async throws(TokenStorageError) -> FileVault {
        FileVault(
            try await WorkerThread(name: "vault").result { () throws(TokenStorageError) in
                try BlockingFileVault.create(at: path, keyring: keyring, configuration: configuration)
            })
    }
}
