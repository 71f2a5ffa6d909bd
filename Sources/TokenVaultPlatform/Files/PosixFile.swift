internal import CLinux
internal import Glibc
package import SystemPackage

/// A file of the real file system.
package final class PosixFile: DiskFile, Notifying {
    private let descriptor: CInt
    /// The directory in which the file can get a name; `nil` when it has one.
    private let directory: PosixDirectory?

    /// Takes over `descriptor` and closes it at the end. A forked child does not inherit it, because all
    /// holders of an open file share its lock.
    init(descriptor: CInt, in directory: PosixDirectory? = nil) {
        self.descriptor = descriptor
        self.directory = directory
        clinux_keep_from_children(descriptor)
    }

    /// Opens the file at `path` for reading, following links.
    package convenience init(reading path: FilePath) throws(SystemFailure) {
        self.init(
            descriptor: try retrying("open") {
                path.withPlatformString { open($0, O_RDONLY | O_NONBLOCK | O_CLOEXEC) }
            })
    }

    /// Skips holes (`lseek` with `SEEK_DATA`).
    package func data(from offset: Int) -> Int? {
        let found = lseek(descriptor, off_t(offset), SEEK_DATA)
        if found >= 0 { return Int(found) }
        return errno == ENXIO ? nil : offset
    }

    deinit {
        clinux_give_to_children(descriptor)
        close(descriptor)
    }

    /// Whether the file can be given a name (it needs a path to the open file).
    var canTakeName: Bool { clinux_can_name_file(descriptor) != 0 }

    package func takeName(_ name: String) throws(SystemFailure) {
        guard let directory else { throw SystemFailure(.notSupportedOnSocket, "linkat") }
        try directory.link(descriptor, to: name)
    }

    package func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        guard count > 0 else { return [] }
        var failure: SystemFailure?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = read(into: UnsafeMutableRawBufferPointer(buffer), at: offset, &failure)
        }
        if let failure { throw failure }
        return bytes
    }

    package func read(into buffer: inout [UInt8], at offset: Int) throws(SystemFailure) -> Int {
        var failure: SystemFailure?
        let count = buffer.withUnsafeMutableBytes { read(into: $0, at: offset, &failure) }
        if let failure { throw failure }
        return count
    }

    private func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int, _ failure: inout SystemFailure?
    ) -> Int {
        var done = 0
        while done < buffer.count {
            let result = pread(
                descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset + done))
            if result > 0 {
                done += result
            } else if result == 0 {
                break
            } else if errno != EINTR {
                failure = SystemFailure(Errno(rawValue: errno), "pread")
                break
            }
        }
        return done
    }

    package func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        var failure: SystemFailure?
        bytes.withUnsafeBytes { buffer in
            var written = 0
            while written < buffer.count {
                let result = pwrite(
                    descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written,
                    off_t(offset + written))
                if result > 0 {
                    written += result
                } else if result == 0 {
                    failure = SystemFailure(.noSpace, "pwrite")
                    return
                } else if errno != EINTR {
                    failure = SystemFailure(Errno(rawValue: errno), "pwrite")
                    return
                }
            }
        }
        if let failure { throw failure }
    }

    package func allocate(_ range: Range<Int>) throws(SystemFailure) {
        guard !range.isEmpty else { return }
        // Called once: on some file systems an interrupted call starts again, and with frequent signals would
        // never end.
        if clinux_allocate(descriptor, off_t(range.lowerBound), off_t(range.count)) == 0 { return }
        let failure = SystemFailure(Errno(rawValue: errno), "fallocate")
        switch failure.errno {
        case .noSpace, .diskQuotaExceeded, .fileTooLarge, .readOnlyFileSystem: throw failure
        // Not available, or not for this file: writing gives the definitive error.
        default: try writeZeros(range)
        }
    }

    package func synchronize() throws(SystemFailure) {
        _ = try retrying("fdatasync") { fdatasync(descriptor) }
    }

    package func resize(to size: Int) throws(SystemFailure) {
        _ = try retrying("ftruncate") { ftruncate(descriptor, off_t(size)) }
    }

    package func makePrivate() throws(SystemFailure) {
        _ = try retrying("fchmod") { fchmod(descriptor, 0o600) }
    }

    package func attributes() throws(SystemFailure) -> FileAttributes {
        try FileAttributes(of: descriptor)
    }

    package func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool {
        let type = Int16(kind == .shared ? F_RDLCK : F_WRLCK)
        return try tryLocking { clinux_ofd_setlk(descriptor, type) }
    }

    /// Tries to take the exclusive lock on the one byte at `offset`, which may be past the end of the file.
    /// Returns false when another holder has it.
    func tryLock(byteAt offset: Int) throws(SystemFailure) -> Bool {
        try tryLocking { clinux_ofd_setlk_byte(descriptor, Int16(F_WRLCK), off_t(offset)) }
    }

    private func tryLocking(_ call: () -> CInt) throws(SystemFailure) -> Bool {
        while true {
            if call() == 0 { return true }
            switch errno {
            case EINTR: continue
            case EAGAIN, EACCES: return false
            default: throw SystemFailure(Errno(rawValue: errno), "fcntl(F_OFD_SETLK)")
            }
        }
    }

    package var fileSystemType: UInt64 { clinux_file_system_type(descriptor) }

    package var notificationPath: String { "/proc/self/fd/\(descriptor)" }

    package func unlock() {
        _ = clinux_ofd_setlk(descriptor, Int16(F_UNLCK))
    }

    package var isLockedForWriting: Bool { clinux_ofd_is_write_locked(descriptor) == 1 }
}
