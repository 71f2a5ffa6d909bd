internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

/// The vaults that this device knows at a path, where their file is gone.
struct MissingVaults {
    /// The state directory; `nil` when there is none.
    let state: (any DiskDirectory)?
    /// The path, without links; `nil` when it cannot be determined.
    let place: FilePath?

    /// The vaults' identifiers. There are several when a vault was moved away and never unlocked there, and
    /// another one was made.
    var identifiers: [VaultIdentifier] {
        guard let state, let place else { return [] }
        return StateStore.vaults(rememberedAt: [place], in: state)
    }

    /// Removes this device's state for the vaults; returns their identifiers. A crash leaves each vault
    /// either known or wholly forgotten. `occupant` has the vaults that the file at the path may be; `nil`
    /// where there is no file. Throws `alreadyExists` when the file is one of the vaults or no vault at all,
    /// and `unavailable` when there are none.
    func forget(among occupant: [VaultIdentifier]?) throws(TokenStorageError) -> [VaultIdentifier] {
        let vaults = identifiers
        if let occupant, occupant.isEmpty || vaults.isEmpty || vaults.contains(where: occupant.contains) {
            throw .file(.alreadyExists, .exists(.vaultToForget))
        }
        guard let state, !vaults.isEmpty else {
            throw .file(.unavailable, .missing(.vaultToForget))
        }
        for vault in vaults { try StateStore(directory: state, vault: vault).removeAll() }
        return vaults
    }
}
