package import SystemPackage

/// Whether what is written somewhere is still there after a restart of the machine or container.
package enum LastingStorage {
    /// `statfs(2)`'s types of tmpfs, ramfs and overlayfs.
    private static let passing: Set<UInt64> = [0x0102_1994, 0x8584_58f6, 0x794c_7630]

    /// Whether files below `path` last, as far as the kind of file system tells: that of the nearest directory
    /// that is there. What cannot be told is taken to last.
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
