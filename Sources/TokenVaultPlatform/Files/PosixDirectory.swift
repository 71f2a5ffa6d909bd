internal import CLinux
internal import Glibc
package import SystemPackage

/// A directory of the real file system, held by descriptor: renaming or replacing its path does not redirect
/// operations in it.
package final class PosixDirectory: DiskDirectory, Notifying {
    private let descriptor: CInt
    package let isRemote: Bool
    /// The directory's identity; `nil` when it cannot be determined.
    private let identity: FileIdentity?

    /// Opens an existing directory.
    package init(_ path: FilePath) throws(SystemFailure) {
        descriptor = try retrying("open") {
            path.withPlatformString { clinux_openat(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) }
        }
        isRemote = FileSystemKind.isRemote(clinux_file_system_type(descriptor))
        identity = try? FileAttributes(of: descriptor).identity
    }

    deinit { close(descriptor) }

    /// Makes the directory and its missing parents, each with mode 0700.
    package static func makeAll(_ path: FilePath) throws(SystemFailure) {
        let made = path.withPlatformString { mkdir($0, 0o700) }
        if made == 0 || errno == EEXIST { return }
        let reason = Errno(rawValue: errno)
        let parent = path.parent
        guard reason == .noSuchFileOrDirectory, !parent.isEmpty, parent != path else {
            throw SystemFailure(reason, "mkdir")
        }
        try makeAll(parent)
        if path.withPlatformString({ mkdir($0, 0o700) }) != 0, errno != EEXIST {
            throw SystemFailure(Errno(rawValue: errno), "mkdir")
        }
        // The new entry must survive a power failure, as must the files below it.
        try PosixDirectory(parent).synchronize()
    }

    /// Removes an empty directory.
    package static func removeEmpty(_ path: FilePath) throws(SystemFailure) {
        if path.withPlatformString({ rmdir($0) }) != 0 {
            throw SystemFailure(Errno(rawValue: errno), "rmdir")
        }
    }

    package func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        var flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        switch access {
        case .read: flags |= O_RDONLY
        case .readWrite: flags |= O_RDWR
        case .create: flags |= O_RDWR | O_CREAT | O_EXCL
        case .nameless: return try nameless()
        }
        let file = try retrying("openat") { clinux_openat(descriptor, name, flags, 0o600) }
        return PosixFile(descriptor: file)
    }

    private func nameless() throws(SystemFailure) -> any DiskFile {
        let file = PosixFile(
            descriptor: try retrying("open(O_TMPFILE)") { clinux_nameless_file_in(descriptor) }, in: self)
        // Without a path to the file (no /proc) it could never get a name.
        guard file.canTakeName else { throw SystemFailure(.notSupportedOnSocket, "open(O_TMPFILE)") }
        return file
    }

    /// Gives the open, nameless file `file` the name `name` here.
    func link(_ file: CInt, to name: String) throws(SystemFailure) {
        guard clinux_name_file(file, descriptor, name) == 0 else {
            throw SystemFailure(Errno(rawValue: errno), "linkat")
        }
    }

    package func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        do {
            return try FileAttributes(of: name, in: descriptor)
        } catch {
            if error.errno == .noSuchFileOrDirectory { return nil }
            throw error
        }
    }

    package func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        let result =
            replacing
            ? renameat(descriptor, name, descriptor, target)
            : clinux_rename_noreplace(descriptor, name, descriptor, target)
        if result == 0 { return }
        let failure = SystemFailure(Errno(rawValue: errno), replacing ? "renameat" : "renameat2")
        // NFS has no RENAME_NOREPLACE. A link does not replace an existing name either.
        guard !replacing, failure.errno == .invalidArgument else { throw failure }
        do {
            try link(name, to: target)
        } catch {
            // Some FUSE file systems have no links either: a check beforehand is the best option left.
            guard
                [Errno.notPermitted, .noFunction, .notSupportedOnSocket, .tooManyLinks].contains(error.errno)
            else { throw error }
            guard try attributes(of: target) == nil else { throw SystemFailure(.fileExists, "renameat") }
            return try rename(name, to: target, replacing: true)
        }
        do {
            try remove(name)
        } catch {
            // Another process that already uses the file may have removed this temporary name.
            if error.errno != .noSuchFileOrDirectory { throw error }
        }
    }

    package func link(_ name: String, to target: String) throws(SystemFailure) {
        guard linkat(descriptor, name, descriptor, target, 0) == 0 else {
            throw SystemFailure(Errno(rawValue: errno), "linkat")
        }
    }

    package func isMountPoint(_ name: String) -> Bool { clinux_is_mount_point(descriptor, name) != 0 }

    package func isReplaced(at path: FilePath) -> Bool {
        guard let identity else { return false }
        do {
            return try FileAttributes(at: path).identity != identity
        } catch {
            return error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory
        }
    }

    package func remove(_ name: String) throws(SystemFailure) {
        if unlinkat(descriptor, name, 0) != 0 { throw SystemFailure(Errno(rawValue: errno), "unlinkat") }
    }

    package func names() throws(SystemFailure) -> [String] {
        try allNames().compactMap { String(validating: $0, as: UTF8.self) }
    }

    package func otherNames() throws(SystemFailure) -> [[UInt8]] {
        try allNames().filter { String(validating: $0, as: UTF8.self) == nil }
    }

    package func open(otherName: [UInt8]) throws(SystemFailure) -> any DiskFile {
        let name = otherName.map { CChar(bitPattern: $0) } + [0]
        let file = try retrying("openat") {
            clinux_openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0)
        }
        return PosixFile(descriptor: file)
    }

    private func allNames() throws(SystemFailure) -> [[UInt8]] {
        // fdopendir takes over its descriptor and position, so it gets a descriptor of its own.
        let own = try retrying("openat") {
            clinux_openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        }
        guard let stream = fdopendir(own) else {
            let reason = Errno(rawValue: errno)
            close(own)
            throw SystemFailure(reason, "fdopendir")
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != Array(".".utf8) && name != Array("..".utf8) { names.append(name) }
        }
        return names
    }

    package func synchronize() throws(SystemFailure) {
        _ = try retrying("fsync") { fsync(descriptor) }
    }

    /// The directory's current path, without links (`/proc/self/fd`); `nil` when it cannot be determined.
    package var absolutePath: FilePath? {
        var buffer = [CChar](repeating: 0, count: 4_097)
        guard readlink("/proc/self/fd/\(descriptor)", &buffer, buffer.count - 1) > 0 else { return nil }
        return FilePath(platformString: buffer)
    }

    /// The type of the directory's file system, as `statfs(2)` numbers it; 0 when it cannot be determined.
    package var fileSystemType: UInt64 { clinux_file_system_type(descriptor) }

    package var notificationPath: String { "/proc/self/fd/\(descriptor)" }
}

/// Repeats `call` while a signal interrupts it. Returns its result, or throws its error.
package func retrying(_ name: String, _ call: () -> CInt) throws(SystemFailure) -> CInt {
    while true {
        let result = call()
        if result >= 0 { return result }
        let reason = Errno(rawValue: errno)
        if reason != .interrupted { throw SystemFailure(reason, name) }
    }
}
