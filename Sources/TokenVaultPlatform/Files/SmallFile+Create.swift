package import SystemPackage

extension SmallFile {
    /// Creates the file at `path`, mode 0600, with `bytes`, durably, and atomically where the file system
    /// allows it. Throws `EEXIST` when the path exists. Missing parent directories are made with mode 0700.
    package static func create(_ path: FilePath, _ bytes: [UInt8]) throws(SystemFailure) {
        guard let name = path.lastComponent?.string else { throw SystemFailure(.invalidArgument, "openat") }
        let parent = path.parent
        let above: FilePath = parent.isEmpty ? "." : parent
        if !parent.isEmpty { try PosixDirectory.makeAll(parent) }
        let directory = try PosixDirectory(above)
        if try createWhole(name, bytes, in: directory) { return }
        let file = try directory.open(name, .create)
        do {
            try file.write(bytes, at: 0)
            try file.synchronize()
            try directory.synchronize()
        } catch {
            try? directory.remove(name)
            throw error
        }
    }

    /// Throws the error of making a file at `path`, as far as a nameless file shows it, which is deleted at
    /// once (`O_TMPFILE`). Throws nothing where the file system has no nameless files.
    package static func requirePlace(_ path: FilePath) throws(SystemFailure) {
        guard let name = path.lastComponent?.string else { throw SystemFailure(.invalidArgument, "openat") }
        let parent = path.parent
        do { _ = try PosixDirectory(parent.isEmpty ? "." : parent).open(name, .nameless) } catch {
            if !error.saysNoNamelessFiles { throw error }
        }
    }

    /// Creates the file without a name and names it when it is complete. Returns false where the file system
    /// has no nameless files.
    private static func createWhole(
        _ name: String, _ bytes: [UInt8], in directory: PosixDirectory
    ) throws(SystemFailure) -> Bool {
        guard try directory.attributes(of: name) == nil else { throw SystemFailure(.fileExists, "openat") }
        let file: any DiskFile
        do { file = try directory.open(name, .nameless) } catch {
            if error.saysNoNamelessFiles { return false }
            throw error
        }
        try file.write(bytes, at: 0)
        try file.synchronize()
        try file.takeName(name)
        do { try directory.synchronize() } catch {
            try? directory.remove(name)
            throw error
        }
        return true
    }

    /// Removes the file at `path`, durably (`unlinkat`).
    package static func remove(_ path: FilePath) throws(SystemFailure) {
        guard let name = path.lastComponent?.string else { throw SystemFailure(.invalidArgument, "unlinkat") }
        let parent = path.parent
        let directory = try PosixDirectory(parent.isEmpty ? "." : parent)
        try directory.remove(name)
        try directory.synchronize()
    }

    /// Returns whether anything is at `path`, including a dangling link (`fstatat`).
    package static func exists(_ path: FilePath) throws(SystemFailure) -> Bool {
        guard let name = path.lastComponent?.string else { return true }
        let parent = path.parent
        do {
            return try PosixDirectory(parent.isEmpty ? "." : parent).attributes(of: name) != nil
        } catch {
            if error.errno == .noSuchFileOrDirectory { return false }
            throw error
        }
    }
}
