internal import SystemPackage
internal import TokenVaultPlatform

/// The vaults that this device knows at a path, where their file is no more.
struct MissingVaults {
    /// The state directory; `nil` when there is none.
    let state: (any DiskDirectory)?
    /// The path, without links; `nil` when it cannot be told.
    let place: FilePath?

    /// Which they are. Several, when a vault was moved away, never unlocked where it is, and another one made.
    var identifiers: [VaultIdentifier] {
        guard let state, let place else { return [] }
        return StateStore.vaults(rememberedAt: [place], in: state)
    }

    /// Removes what this device keeps for them; returns which they were. A crash leaves each known, or forgotten with all
    /// that was kept for it. `occupant` says which vaults the file at the path may be; `nil` where there is none. Throws
    /// `alreadyExists` when that is one of them or no other vault, `unavailable` when there are none.
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
