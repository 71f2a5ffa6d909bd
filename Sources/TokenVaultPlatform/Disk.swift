package import SystemPackage

/// What the vault asks of a disk. One small interface, so that a simulated disk can stand in and every
/// crash can be tried; ``PosixDirectory`` is the real one.
package protocol DiskDirectory: AnyObject, Sendable {
    /// Opens the file `name` in this directory, never through a symbolic link.
    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile
    /// What is at `name` now (`statx` without following links); `nil` when nothing is.
    func attributes(of name: String) throws(SystemFailure) -> FileAttributes?
    /// Renames within the directory. Without `replacing`, fails with `EEXIST` when `target` exists.
    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure)
    /// Gives the file `name` a second name, `target`, in the same directory. Fails with `EEXIST` when that is taken,
    /// and in many ways where the file system has no such thing.
    func link(_ name: String, to target: String) throws(SystemFailure)
    /// Removes the file `name`.
    func remove(_ name: String) throws(SystemFailure)
    /// The names in the directory, in no order, without `.` and `..`. Those that are no UTF-8 are left out.
    func names() throws(SystemFailure) -> [String]
    /// The names that ``names()`` leaves out, byte for byte.
    func otherNames() throws(SystemFailure) -> [[UInt8]]
    /// Opens for reading what has a name of these bytes, never through a symbolic link.
    func open(otherName: [UInt8]) throws(SystemFailure) -> any DiskFile
    /// Makes creations, renames and removals durable (`fsync` of the directory).
    func synchronize() throws(SystemFailure)
    /// Whether something is mounted on what is at `name`, so that it can be neither replaced nor removed (`statx`).
    func isMountPoint(_ name: String) -> Bool
    /// Whether this is not the directory at `path` any more: it was moved away or removed, and perhaps another put in its
    /// place. False when that cannot be told (`statx`).
    func isReplaced(at path: FilePath) -> Bool
    /// Whether other machines may write there, or a program stands between the kernel and the files (NFS, SMB, FUSE …).
    var isRemote: Bool { get }
}

extension DiskDirectory {
    package var isRemote: Bool { false }
    package func isMountPoint(_ name: String) -> Bool { false }
    package func isReplaced(at path: FilePath) -> Bool { false }

    /// None: for directories whose names are texts.
    package func otherNames() throws(SystemFailure) -> [[UInt8]] { [] }
    package func open(otherName: [UInt8]) throws(SystemFailure) -> any DiskFile {
        throw SystemFailure(.noSuchFileOrDirectory, "openat")
    }
}

extension DiskDirectory {
    /// Fails with `EOPNOTSUPP`, as a file system without second names does.
    package func link(_ name: String, to target: String) throws(SystemFailure) {
        throw SystemFailure(.notSupportedOnSocket, "linkat")
    }
}

/// An open file. Offsets and lengths are bytes.
package protocol DiskFile: AnyObject, Sendable {
    /// Up to `count` bytes at `offset`; fewer only at the end of the file.
    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8]
    /// Reads from `offset` into the front of `buffer`, all of it unless the file ends before, and returns how many bytes
    /// that are.
    func read(into buffer: inout [UInt8], at offset: Int) throws(SystemFailure) -> Int
    /// The first offset from `offset` on where something may have been written; `nil` when zeros that take no room follow to
    /// the end.
    func data(from offset: Int) -> Int?
    /// Writes all of `bytes` at `offset`, or throws with any part of them written.
    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure)
    /// Gives `range`, of which nothing or zeros are there, its room on the disk: zeros that the file goes on with
    /// (`fallocate`, where the file system has it). Throws with any part of it done.
    func allocate(_ range: Range<Int>) throws(SystemFailure)
    /// Makes what was written durable, with the size needed to read it (`fdatasync`).
    func synchronize() throws(SystemFailure)
    /// Sets the size (`ftruncate`).
    func resize(to size: Int) throws(SystemFailure)
    /// Gives the file mode 0600 (`fchmod`).
    func makePrivate() throws(SystemFailure)
    /// Identity, size, kind, owner and mode (`statx`).
    func attributes() throws(SystemFailure) -> FileAttributes
    /// Tries to take the whole-file lock of this open file; false when another holds it.
    func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool
    /// Releases the lock of this open file.
    func unlock()
    /// Whether another open file has the exclusive lock of this one (`F_OFD_GETLK`). False where the system cannot tell.
    var isLockedForWriting: Bool { get }
    /// Gives a file that was opened as ``FileAccess/nameless`` the name `name` in its directory (`linkat`). Fails with
    /// `EEXIST` when something has it.
    func takeName(_ name: String) throws(SystemFailure)
}

extension DiskFile {
    /// There: for files without holes.
    package func data(from offset: Int) -> Int? { offset }

    /// Writes zeros: for files whose room cannot be had in another way.
    package func allocate(_ range: Range<Int>) throws(SystemFailure) { try writeZeros(range) }

    /// Writes zeros, a mebibyte at a time.
    package func writeZeros(_ range: Range<Int>) throws(SystemFailure) {
        var zeros = [UInt8](repeating: 0, count: min(range.count, 1 << 20))
        var reached = range.lowerBound
        while reached < range.upperBound {
            if range.upperBound - reached < zeros.count {
                zeros.removeLast(zeros.count - (range.upperBound - reached))
            }
            try write(zeros, at: reached)
            reached += zeros.count
        }
    }

    /// Nothing: for files without modes.
    package func makePrivate() throws(SystemFailure) {}

    /// Fails with `EOPNOTSUPP`: for files that have names from the beginning.
    package func takeName(_ name: String) throws(SystemFailure) {
        throw SystemFailure(.notSupportedOnSocket, "linkat")
    }

    package func read(into buffer: inout [UInt8], at offset: Int) throws(SystemFailure) -> Int {
        let bytes = try read(buffer.count, at: offset)
        buffer.replaceSubrange(0..<bytes.count, with: bytes)
        return bytes.count
    }
}

/// How a file is opened.
package enum FileAccess: Sendable {
    /// For reading only.
    case read
    /// For reading and writing; the file exists.
    case readWrite
    /// For reading and writing; the file must not exist and is created with mode 0600.
    case create
    /// For reading and writing; a new file of mode 0600 that has no name (`O_TMPFILE`) and is gone when nobody has it
    /// open, unless ``DiskFile/takeName(_:)`` gives it one. The name that is opened does not matter.
    case nameless
}

extension SystemFailure {
    /// Whether a file system that was asked for a file without a name has none.
    package var saysNoNamelessFiles: Bool {
        [.notSupportedOnSocket, .isDirectory, .invalidArgument, .noFunction].contains(errno)
    }
}

/// The two lock kinds of `fcntl(F_OFD_SETLK)`.
package enum FileLock: Sendable {
    case shared, exclusive
}
