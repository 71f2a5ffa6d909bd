package import SystemPackage

/// The operations that the vault needs from a disk. The interface is small, so that a simulated disk can
/// replace it and tests can try every crash. ``PosixDirectory`` is the real one.
package protocol DiskDirectory: AnyObject, Sendable {
    /// Opens the file `name` in this directory, never through a symbolic link.
    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile
    /// Returns the attributes of the file at `name` (`statx` without following links), or `nil` when there is
    /// none.
    func attributes(of name: String) throws(SystemFailure) -> FileAttributes?
    /// Renames within the directory. Without `replacing`, fails with `EEXIST` when `target` exists.
    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure)
    /// Gives the file `name` a second name, `target`, in the same directory. Fails with `EEXIST` when
    /// `target` exists. Fails with various errors where the file system has no hard links.
    func link(_ name: String, to target: String) throws(SystemFailure)
    /// Removes the file `name`.
    func remove(_ name: String) throws(SystemFailure)
    /// Returns the names in the directory, in no order, without `.` and `..`. Names that are not UTF-8 are
    /// left out.
    func names() throws(SystemFailure) -> [String]
    /// Returns the names that ``names()`` leaves out, as bytes.
    func otherNames() throws(SystemFailure) -> [[UInt8]]
    /// Opens the file with these name bytes for reading, never through a symbolic link.
    func open(otherName: [UInt8]) throws(SystemFailure) -> any DiskFile
    /// Makes creations, renames and removals durable (`fsync` of the directory).
    func synchronize() throws(SystemFailure)
    /// Returns whether something is mounted at `name`, so that `name` can be neither replaced nor removed
    /// (`statx`).
    func isMountPoint(_ name: String) -> Bool
    /// Returns whether this is no longer the directory at `path`: it was moved or removed, and perhaps
    /// replaced. Returns false when that cannot be determined (`statx`).
    func isReplaced(at path: FilePath) -> Bool
    /// Whether other machines may write there, or a user-space program serves the files (NFS, SMB, FUSE …).
    var isRemote: Bool { get }
}

extension DiskDirectory {
    package var isRemote: Bool { false }
    package func isMountPoint(_ name: String) -> Bool { false }
    package func isReplaced(at path: FilePath) -> Bool { false }

    /// Returns none: for directories in which every name is text.
    package func otherNames() throws(SystemFailure) -> [[UInt8]] { [] }
    package func open(otherName: [UInt8]) throws(SystemFailure) -> any DiskFile {
        throw SystemFailure(.noSuchFileOrDirectory, "openat")
    }
}

extension DiskDirectory {
    /// Fails with `EOPNOTSUPP`, as a file system without hard links does.
    package func link(_ name: String, to target: String) throws(SystemFailure) {
        throw SystemFailure(.notSupportedOnSocket, "linkat")
    }
}

/// An open file. Offsets and lengths are bytes.
package protocol DiskFile: AnyObject, Sendable {
    /// Returns up to `count` bytes at `offset`; fewer only at the end of the file.
    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8]
    /// Reads from `offset` into `buffer` and returns the number of bytes read. Fills the whole buffer unless
    /// the file ends before.
    func read(into buffer: inout [UInt8], at offset: Int) throws(SystemFailure) -> Int
    /// Returns the first offset from `offset` on that may have data; `nil` when only a hole follows up to the
    /// end.
    func data(from offset: Int) -> Int?
    /// Writes all of `bytes` at `offset`. After an error any part of them may be written.
    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure)
    /// Allocates disk space for `range`, as zeros by which the file may grow (`fallocate`, where the file
    /// system has it). The range must hold zeros or lie behind the end. After an error any part of it may be
    /// done.
    func allocate(_ range: Range<Int>) throws(SystemFailure)
    /// Makes written data durable, with the size needed to read it (`fdatasync`).
    func synchronize() throws(SystemFailure)
    /// Sets the size (`ftruncate`).
    func resize(to size: Int) throws(SystemFailure)
    /// Gives the file mode 0600 (`fchmod`).
    func makePrivate() throws(SystemFailure)
    /// Returns identity, size, kind, owner and mode (`statx`).
    func attributes() throws(SystemFailure) -> FileAttributes
    /// Tries to take the whole-file lock of this open file. Returns false when another holder has it.
    func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool
    /// Releases the lock of this open file.
    func unlock()
    /// Whether another open file has the exclusive lock on this file (`F_OFD_GETLK`). False where the system
    /// cannot report it.
    var isLockedForWriting: Bool { get }
    /// Gives a file that was opened as ``FileAccess/nameless`` the name `name` in its directory (`linkat`).
    /// Fails with `EEXIST` when the name is taken.
    func takeName(_ name: String) throws(SystemFailure)
}

extension DiskFile {
    /// Returns `offset`: for files without holes.
    package func data(from offset: Int) -> Int? { offset }

    /// Writes zeros: for files without another way to allocate space.
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

    /// Does nothing: for files without modes.
    package func makePrivate() throws(SystemFailure) {}

    /// Fails with `EOPNOTSUPP`: for files that always have a name.
    package func takeName(_ name: String) throws(SystemFailure) {
        throw SystemFailure(.notSupportedOnSocket, "linkat")
    }

    package func read(into buffer: inout [UInt8], at offset: Int) throws(SystemFailure) -> Int {
        let bytes = try read(buffer.count, at: offset)
        buffer.replaceSubrange(0..<bytes.count, with: bytes)
        return bytes.count
    }
}

/// The way in which a file is opened.
package enum FileAccess: Sendable {
    /// For reading only.
    case read
    /// For reading and writing; the file exists.
    case readWrite
    /// For reading and writing; the file must not exist and is created with mode 0600.
    case create
    /// For reading and writing; a new file of mode 0600 without a name (`O_TMPFILE`). It is deleted when its
    /// last descriptor is closed, unless ``DiskFile/takeName(_:)`` gives it a name. The given name is
    /// ignored.
    case nameless
}

extension SystemFailure {
    /// Whether the error means that the file system has no nameless files.
    package var saysNoNamelessFiles: Bool {
        [.notSupportedOnSocket, .isDirectory, .invalidArgument, .noFunction].contains(errno)
    }
}

/// The two lock kinds of `fcntl(F_OFD_SETLK)`.
package enum FileLock: Sendable {
    case shared, exclusive
}
