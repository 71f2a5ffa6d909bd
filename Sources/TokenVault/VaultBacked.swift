internal import SystemPackage

/// A storage whose items are in a vault file of this machine: what has to be beside that file has a place.
package protocol VaultBacked: TokenStorage {
    /// The vault's path.
    var vaultPath: FilePath { get }
}

extension FileTokenStorage: VaultBacked {
    package var vaultPath: FilePath { blocking.vault.path }
}
