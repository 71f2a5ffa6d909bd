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
            let key = try freshKey(in: keyring, vault: identifier, name: creation.location.name)
            do throws(TokenStorageError) {
                return try create(creation, .secretService(key))
            } catch {
                // A vault that is there in spite of the error needs it.
                if case .some = try? creation.refuseExisting() { _ = try? keyring.delete(vault: identifier) }
                throw error
            }
        }
    }

    /// Unlocks with the key that `keyring` keeps for this vault. Throws `locked` when it keeps none,
    /// `wrongPassphrase` when that opens no slot, what `keyring` throws, and as ``unlock(with:mending:)``.
    public func unlock(from keyring: any KeyringItems, mending: Bool = true) throws(TokenStorageError) {
        try during("unlock") { () throws(TokenStorageError) in
            guard let key = try keyring.key(vault: identifier) else {
                throw .file(
                    .locked, underlying: "the keyring has no key of this vault",
                    advice: "unlock it another way, and add a slot for this keyring")
            }
            // A key of another length is not one that we keep: it opens nothing.
            guard key.count == UnlockMethod.keyringKeyLength else { throw .file(.wrongPassphrase) }
            try unlock(with: .secretService(key), mending: mending)
        }
    }

    /// Adds a slot that a key in `keyring` opens, and returns it; what it opens is decided as by
    /// ``addSlot(_:scope:)``. A key that the keyring keeps for this vault
    /// already is used: a copy of the vault may depend on it. The vault must be unlocked (`locked`).
    /// Throws `alreadyExists` when the keyring opens the vault as it is, what `keyring` throws, `ioFailure` when
    /// it does not give back what it was given, and as ``addSlot(_:scope:)``.
    public func addSlot(
        in keyring: any KeyringItems, scope: VaultSlot.Scope? = nil
    ) throws(TokenStorageError) -> VaultSlot {
        try during("slot add") { () throws(TokenStorageError) in
            guard try session().ring.roots != nil else { throw .file(.locked) }
            if let key = try keyring.key(vault: identifier), key.count == UnlockMethod.keyringKeyLength {
                guard try !opensSlot(key) else {
                    throw .file(.alreadyExists, advice: "the keyring opens this vault already")
                }
                return try addSlot(.secretService(key), scope: scope)
            }
            let name = location.name
            let key = try Self.freshKey(in: keyring, vault: identifier, name: name)
            do throws(TokenStorageError) {
                return try addSlot(.secretService(key), scope: scope)
            } catch {
                // Nothing depends on it, unless it may have become a slot.
                if error.code != .outcomeUnknown { _ = try? keyring.delete(vault: identifier) }
                throw error
            }
        }
    }

    /// Deletes the key that `keyring` keeps for this vault unless it opens a slot; says whether it did. For
    /// after ``removeSlot(_:)``. The vault must have been unlocked once (`locked`). Throws what `keyring`
    /// throws.
    @discardableResult
    public func deleteUnusedKey(in keyring: any KeyringItems) throws(TokenStorageError) -> Bool {
        try during("slot remove") { () throws(TokenStorageError) in
            guard let key = try keyring.key(vault: identifier), try !opensSlot(key) else { return false }
            return try keyring.delete(vault: identifier)
        }
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

    /// A new key, which `keyring` keeps and gives back.
    private static func freshKey(
        in keyring: any KeyringItems, vault: String, name: String
    ) throws(TokenStorageError) -> Secret {
        var bytes = Random.bytes(UnlockMethod.keyringKeyLength)
        defer { SmallFile.wipe(&bytes) }
        let key = Secret(bytes)
        try keyring.store(key, vault: vault, label: "TokenVault: key of \(name)")
        guard try keyring.key(vault: vault) == key else {
            throw .file(.ioFailure, underlying: "the keyring does not give back what was stored")
        }
        return key
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

    /// See ``BlockingFileVault/unlock(from:mending:)``.
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
