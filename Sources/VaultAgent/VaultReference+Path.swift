package import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform

extension VaultReference {
    /// The vault at `path`, as every process of this machine names it: from the root, and without links in what leads to
    /// it. Where there is no such directory, what leads there is followed as far as it goes: an agent may hold what was there.
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
