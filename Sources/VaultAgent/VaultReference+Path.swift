package import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform

extension VaultReference {
    /// The vault at `path`, as every process of this machine names it: from the root, and without links in what leads to
    /// it. A directory that is not there is taken as it is written.
    package init(at path: FilePath) {
        var parent = path.parent
        if parent.isEmpty { parent = "." }
        guard let name = path.lastComponent, let directory = try? PosixDirectory(parent),
            let absolute = directory.absolutePath
        else {
            self.init(path: path)
            return
        }
        self.init(path: absolute.appending(name))
    }
}
