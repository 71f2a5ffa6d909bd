package import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform

extension VaultReference {
    /// Creates the reference to the vault at `path`, as every process of this machine names it: an absolute
    /// path without links in its parent directories. If the directory does not exist, links are resolved as
    /// far as possible: an agent may hold a vault that was there.
    package init(at path: FilePath) {
        var parent = path.parent
        if parent.isEmpty { parent = "." }
        guard let name = path.lastComponent else {
            self.init(path: path)
            return
        }
        let directory = (try? PosixDirectory(parent))?.absolutePath ?? ProgramContext.resolved(parent)
        self.init(path: directory.appending(name))
    }
}
