package import SystemPackage

extension SmallFile {
    /// Creates the file at `path`, mode 0600, with `bytes`, durably; where the file system can, it is there whole or
    /// not at all. `EEXIST` when something is there already. Missing directories above are made, 0700.
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

    /// Throws what keeps a file from being made at `path`, as far as a file without a name tells, which is gone at once
    /// (`O_TMPFILE`): where the file system has none of these, nothing is told.
    package static func requirePlace(_ path: FilePath) throws(SystemFailure) {
        guard let name = path.lastComponent?.string else { throw SystemFailure(.invalidArgument, "openat") }
        let parent = path.parent
        do { _ = try PosixDirectory(parent.isEmpty ? "." : parent).open(name, .nameless) } catch {
            if !error.saysNoNamelessFiles { throw error }
        }
    }

    /// Whether the file system has files without a name, and so this one was given its own when it was whole.
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

    /// Whether something is at `path`, be it a link to nowhere (`fstatat`).
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
