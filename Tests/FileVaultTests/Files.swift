import Glibc
import SystemPackage
import TokenVaultPlatform

/// Removes a directory and all below it.
func removeTree(_ path: FilePath) {
    guard let directory = try? PosixDirectory(path), let names = try? directory.names() else { return }
    for name in names {
        let below = path.appending(name)
        if (try? directory.attributes(of: name))?.kind == .directory {
            removeTree(below)
        } else {
            try? directory.remove(name)
        }
    }
    try? PosixDirectory.removeEmpty(path)
}
