internal import SystemPackage
internal import TokenVaultPlatform

extension BlockingFileVault {
    /// Returns the identifier, like ``identifier``, that the file at `path` claims. The file's name, owner
    /// and mode do not matter, nor does damage elsewhere in it; links are followed. Nothing is authenticated.
    /// Returns `nil` for a file that is no vault or cannot be read.
    package static func identifier(ofFileAt path: FilePath) -> String? {
        guard SmallFile.isRegular(path), let file = try? PosixFile(reading: path) else { return nil }
        return (try? VaultFile(file).keybags)?.vaults.first?.hexadecimal
    }
}
