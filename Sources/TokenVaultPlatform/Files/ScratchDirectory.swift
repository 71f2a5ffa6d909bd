package import SystemPackage

/// A temporary directory: made with an unused name and mode 0700. It is removed with its contents, and with
/// the parent directories that were made for it.
package final class ScratchDirectory {
    /// The directory's path.
    package let path: FilePath
    private var above: [FilePath] = []

    /// Makes a directory in `parent`, which is made too when it is missing.
    package init(in parent: FilePath) throws(SystemFailure) {
        var missing: [FilePath] = []
        var ancestor = parent
        while !ancestor.isEmpty, try !SmallFile.exists(ancestor) {
            missing.append(ancestor)
            ancestor = ancestor.parent
        }
        try PosixDirectory.makeAll(parent)
        let number = UInt64.random(in: 0...UInt64.max)
        let path = parent.appending(".scratch-\(String(number, radix: 36))")
        guard try !SmallFile.exists(path) else { throw SystemFailure(.fileExists, "mkdir") }
        try PosixDirectory.makeAll(path)
        self.path = path
        above = missing
    }

    deinit { remove() }

    /// Removes the directory and its contents, as far as possible.
    package func remove() {
        try? Self.remove(path)
        for directory in above { try? PosixDirectory.removeEmpty(directory) }
        above = []
    }

    /// Removes the directory at `path`, made by another process, and its contents, as far as possible.
    package static func removeAll(_ path: FilePath) { try? remove(path) }

    private static func remove(_ path: FilePath) throws(SystemFailure) {
        let directory = try PosixDirectory(path)
        for name in try directory.names() {
            if try directory.attributes(of: name)?.kind == .directory {
                try remove(path.appending(name))
            } else {
                try directory.remove(name)
            }
        }
        try PosixDirectory.removeEmpty(path)
    }
}
