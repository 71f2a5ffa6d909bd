package import TokenVaultPlatform

/// Where a vault lives: the real disk, or a simulated one.
package struct VaultLocation: Sendable {
    /// The directory of the vault file.
    package let directory: any DiskDirectory
    /// The vault file's name in it.
    package let name: String
    /// The directory of the device key and the anchor; `nil` for none.
    package let state: (any DiskDirectory)?
    /// The vault's path, for messages.
    package let path: FilePath

    package init(directory: any DiskDirectory, name: String, state: (any DiskDirectory)?, path: FilePath) {
        self.directory = directory
        self.name = name
        self.state = state
        self.path = path
    }
}
