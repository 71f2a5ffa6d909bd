internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The place where this device knows a vault to be, compared with the file at hand.
enum VaultPlaces {
    /// Returns the vault at the path that this device remembers, unless it is missing there or is the file
    /// with `identity`. By another name, a link or a mount, the same file is one vault. Throws
    /// `resourcesExhausted` and `ioFailure`.
    static func living(
        _ store: StateStore, here: FilePath, identity: FileIdentity?, vault: VaultIdentifier
    ) throws(TokenStorageError) -> (path: FilePath, file: any DiskFile)? {
        guard let place = try store.place(), place != here else { return nil }
        do throws(TokenStorageError) {
            let original = try VaultLocation.real(
                place, configuration: FileVaultConfiguration(stateDirectory: nil), creating: false)
            guard let found = try VaultFile.openIfThere(original, for: .copy),
                found.attributes.identity != identity, try found.keybags.vaults.contains(vault)
            else { return nil }
            return (place, found.file)
        } catch {
            // A failure to look says nothing about what is there.
            if error.code == .resourcesExhausted || error.code == .ioFailure { throw error }
            return nil
        }
    }

    /// Returns the file of the vault `vault` that is at another path than `place`, as far as this device knows.
    /// `existing` is the file at `place`. Throws as ``living(_:here:identity:vault:)``.
    static func otherFile(
        of vault: VaultIdentifier, than place: VaultLocation, _ existing: ExistingFile?
    ) throws(TokenStorageError) -> (path: FilePath, file: any DiskFile)? {
        guard let state = place.state, let here = place.absolutePath else { return nil }
        return try living(
            StateStore(directory: state, vault: vault), here: here, identity: existing?.identity, vault: vault
        )
    }

    /// Throws `unexpectedVault` when this device remembers another vault than `vault` at `place`.
    static func requireExpected(
        _ vault: VaultIdentifier, at place: VaultLocation, knownTo state: (any DiskDirectory)?
    ) throws(TokenStorageError) {
        guard let state else { return }
        let store = StateStore(directory: state, vault: vault)
        try requireExpected(store, rememberedAt: store.place(), at: place)
    }

    /// Returns whether the file at `here` is a copy of the vault of `store`, which itself is where this
    /// device remembers it. The device's state then belongs to the vault, and no change of the copy may make
    /// the vault's items unreadable. Throws as ``living(_:here:identity:vault:)``.
    static func isCopy(at here: FilePath?, _ store: StateStore) throws(TokenStorageError) -> Bool {
        guard let here else { return false }
        return try living(store, here: here, identity: nil, vault: store.vault) != nil
    }

    /// Throws `unexpectedVault` when this device remembers another vault at `location` than that of `store`,
    /// which it remembers at `place`. A vault that is itself remembered there took the place of others on
    /// purpose. Both the path as given and the path without links count: a link may have come later.
    static func requireExpected(
        _ store: StateStore, rememberedAt place: FilePath?, at location: VaultLocation
    ) throws(TokenStorageError) {
        for here in [location.absolutePath, location.linkedPath].compactMap({ $0 }) where place != here {
            let expected = StateStore.vaults(rememberedAt: [here], in: store.directory)
            if !expected.isEmpty, !expected.contains(store.vault) {
                throw .file(.unexpectedVault, .otherVaultExpected(path: here.string))
            }
        }
    }

    /// Returns whether the file at `place` is the one with `identity`.
    static func isSame(_ place: FilePath, _ identity: FileIdentity?) -> Bool {
        guard let name = place.lastComponent?.string,
            let directory = try? PosixDirectory(place.parent),
            let there = try? directory.attributes(of: name)
        else { return false }
        return there.identity == identity
    }
}

extension TokenStorageError {
    /// Returns the error that the same vault is at `path` as well.
    static func duplicate(_ path: FilePath) -> TokenStorageError {
        .file(.duplicateVault, .vaultIsElsewhere(path: path.string))
    }
}
