internal import SystemPackage
internal import TokenVaultPlatform

extension BlockingFileVault {
    /// Which vault the file at `path` says it is, as ``identifier`` has it, whatever it is called, whoever may read it, and
    /// however damaged the rest is; links are followed. Nothing of that is authenticated. `nil` for what is no vault, and when
    /// it cannot be read.
    package static func identifier(ofFileAt path: FilePath) -> String? {
        guard SmallFile.isRegular(path), let file = try? PosixFile(reading: path) else { return nil }
        return (try? VaultFile(file).keybags)?.vaults.first?.hexadecimal
    }
}
