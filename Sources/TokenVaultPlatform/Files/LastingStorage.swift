package import SystemPackage

/// The durability of directories across a restart of the machine or container.
package enum LastingStorage {
    /// The types in `statfs(2)` of tmpfs, ramfs and overlayfs.
    private static let passing: Set<UInt64> = [0x0102_1994, 0x8584_58f6, 0x794c_7630]

    /// Returns whether files below `path` survive a restart, by the file system type of the nearest existing
    /// directory. Returns true when the type cannot be determined.
    package static func isLasting(_ path: FilePath) -> Bool {
        var place = path
        while true {
            if let directory = try? PosixDirectory(place.isEmpty ? "." : place) {
                return !passing.contains(directory.fileSystemType)
            }
            guard !place.isEmpty, place.parent != place else { return true }
            place.removeLastComponent()
        }
    }
}
