public import SystemPackage

/// A path of the file system, from swift-system; a literal or `FilePath(string)` makes one.
public typealias FilePath = SystemPackage.FilePath

/// A storage whose items are in a vault file on this machine, so that related files can be kept beside the
/// vault. A storage that wraps a vault-backed one conforms too, so that its refreshes take the same lease.
public protocol VaultBacked: TokenStorage {
    /// The vault's path.
    var vaultPath: FilePath { get }
}
