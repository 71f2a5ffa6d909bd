import TokenVaultPlatform

/// One thing that was asked of a ``SimulatedDisk`` and that can matter after a crash.
enum DiskOperation: Sendable {
    case write(inode: Int, offset: Int, bytes: [UInt8])
    case resize(inode: Int, size: Int)
    case synchronize(inode: Int)
    /// A sync that failed: the pages are clean now, what they held need never reach the disk.
    case failSynchronize(inode: Int)
    case create(directory: Int, name: String, inode: Int)
    case rename(directory: Int, name: String, target: String)
    case link(directory: Int, name: String, target: String)
    case remove(directory: Int, name: String)
    case synchronizeDirectory(directory: Int)
    case lock(handle: Int, inode: Int, kind: FileLock)
    /// The lock of an open file was released, or the file was closed.
    case unlock(handle: Int, inode: Int)
}

extension DiskOperation: CustomStringConvertible {
    var description: String {
        switch self {
        case .write(let inode, let offset, let bytes):
            "write inode \(inode) at \(offset), \(bytes.count) bytes"
        case .resize(let inode, let size): "resize inode \(inode) to \(size)"
        case .synchronize(let inode): "sync inode \(inode)"
        case .failSynchronize(let inode): "sync inode \(inode): failed"
        case .create(let directory, let name, let inode): "create \(directory)/\(name), inode \(inode)"
        case .rename(let directory, let name, let target):
            "rename \(directory)/\(name) to \(target)"
        case .link(let directory, let name, let target): "link \(directory)/\(name) to \(target)"
        case .remove(let directory, let name): "remove \(directory)/\(name)"
        case .synchronizeDirectory(let directory): "sync directory \(directory)"
        case .lock(let handle, let inode, let kind): "lock inode \(inode) by \(handle), \(kind)"
        case .unlock(let handle, let inode): "unlock inode \(inode) by \(handle)"
        }
    }
}
