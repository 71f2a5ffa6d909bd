import SystemPackage

/// A failure that a test injects into a ``SimulatedDisk``.
struct DiskFault: Sendable {
    /// What an operation does.
    enum Kind: Sendable {
        case open, create, attributes, read, write, resize, synchronize, rename, link, remove, names
        case synchronizeDirectory, lock
    }

    /// The operation that fails.
    var kind: Kind
    /// Only in this directory, when given.
    var directory: Int?
    /// Only for files whose name, when opened, ended in this.
    var suffix = ""
    /// How many such operations succeed before.
    var skipping = 0
    /// How many then fail.
    var times = 1
    /// What they fail with.
    var errno: Errno
    /// For a write: how many bytes of it are written all the same.
    var bytesWritten = 0
}
