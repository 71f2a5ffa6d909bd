internal import Synchronization
internal import TokenVaultCrypto
internal import TokenVaultPlatform

// A key in the person's keyring as an unlock method: a login opens the vault, with no passphrase.
extension BlockingFileVault {
    /// Creates a vault at `path` that a fresh key in `keyring` opens, and returns it unlocked. Add another
    /// slot: when the keyring is lost, what is in the vault is lost with it. Throws as
    /// ``create(at:unlockMethod:configuration:)``, and what `keyring` throws.
    public static func create(
        at path: FilePath, keyring: any KeyringItems, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> BlockingFileVault {
        try during("create") { () throws(TokenStorageError) in
            let creation = VaultCreation(
                location: try VaultLocation.real(path, configuration: configuration, creating: true),
                configuration: configuration)
            try creation.refuseExisting()
            // The key is kept before there is a vault that only it opens.
            let identifier = creation.vault.hexadecimal
            let (name, key) = try freshKey(in: keyring, vault: identifier, of: creation.location.name)
            do throws(TokenStorageError) {
                return try create(creation, .secretService(key))
            } catch {
                // A vault that is there in spite of the error needs it.
                if case .some = try? creation.refuseExisting() {
                    _ = try? keyring.delete(vault: identifier, name: name)
                }
                throw error
            }
        }
    }

    /// Unlocks with a key that `keyring` keeps for this vault. Throws `locked` when it keeps none,
    /// `wrongPassphrase` when none opens a slot, what `keyring` throws, and as ``unlock(with:repairing:)``.
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
                    // Not one that we keep, or that of another copy of the vault.
                    guard error.code == .wrongPassphrase else { throw error }
                }
            }
            throw .file(.wrongPassphrase)
        }
    }

    /// Adds a slot that a fresh key in `keyring` opens, and returns it; what it opens is decided as by
    /// ``addSlot(_:scope:)``. The vault must be unlocked (`locked`). Throws `alreadyExists` when the keyring opens
    /// the vault as it is, what `keyring` throws, `ioFailure` when it does not give back what it was given, and as
    /// ``addSlot(_:scope:)``.
    ///
    /// What the keyring has already and opens no slot is left alone: it may be another copy's, or another program
    /// may have put it there.
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
                // Nothing depends on it, unless it may have become a slot.
                if error.code != .outcomeUnknown { _ = try? keyring.delete(vault: identifier, name: name) }
                throw error
            }
        }
    }

    /// Deletes the keys that `keyring` keeps for this vault and that open no slot; says whether there were
    /// some. For after ``removeSlot(_:)``. In a copy of a vault that this device knows at another path nothing is
    /// deleted: the vault may need them. The vault must have been unlocked once (`locked`). Throws what
    /// `keyring` throws.
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

    /// The keys of `keyring` that open a slot. Throws as ``deleteUnusedKeys(in:)``.
    package func openingKeys(in keyring: any KeyringItems) throws(TokenStorageError) -> [Secret] {
        var keys: [Secret] = []
        for (_, key) in try usableKeys(in: keyring) where try opensSlot(key) { keys.append(key) }
        return keys
    }

    /// The keys that can be one of ours, those that open a slot of the keybag as it was read first. No more than
    /// a vault has slots for: any program of the person can add others.
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

    /// A new key, which `keyring` keeps and gives back, and its name there.
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
    /// See ``BlockingFileVault/create(at:keyring:configuration:)``.
    public static func create(
        at path: FilePath, keyring: any KeyringItems, configuration: FileVaultConfiguration
    ) async throws(TokenStorageError) -> FileVault {
        FileVault(
            try await WorkerThread(name: "vault").result { () throws(TokenStorageError) in
                try BlockingFileVault.create(at: path, keyring: keyring, configuration: configuration)
            })
    }

    /// See ``BlockingFileVault/unlock(from:repairing:)``.
    public func unlock(from keyring: any KeyringItems) async throws(TokenStorageError) {
        let blocking = blocking
        try await thread.result { () throws(TokenStorageError) in try blocking.unlock(from: keyring) }
    }

    /// See ``BlockingFileVault/addSlot(in:scope:)``.
    public func addSlot(
        in keyring: any KeyringItems, scope: VaultSlot.Scope? = nil
    ) async throws(TokenStorageError) -> VaultSlot {
        let blocking = blocking
        return try await thread.result { () throws(TokenStorageError) in
            try blocking.addSlot(in: keyring, scope: scope)
        }
    }
}
