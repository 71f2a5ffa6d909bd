public import SystemPackage

/// A storage whose items are in a vault file of this machine: what has to be beside that file has a place. A storage that
/// wraps one of these says so too, so that its refreshes take the same lease.
public protocol VaultBacked: TokenStorage {
    /// The vault's path.
    var vaultPath: FilePath { get }
}

extension FileTokenStorage: VaultBacked {
    /// The vault's path.
    public var vaultPath: FilePath { blocking.vault.location.absolutePath ?? blocking.vault.path }
}
