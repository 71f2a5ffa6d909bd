package import SystemPackage
package import TokenVaultPlatform

/// A directory that does as another one does, but for what the type says itself.
package protocol ForwardingDirectory: DiskDirectory {
    var base: any DiskDirectory { get }
}

extension ForwardingDirectory {
    package var isRemote: Bool { base.isRemote }
    package func isMountPoint(_ name: String) -> Bool { base.isMountPoint(name) }
    package func isReplaced(at path: FilePath) -> Bool { base.isReplaced(at: path) }
    package func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        try base.open(name, access)
    }
    package func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        try base.attributes(of: name)
    }
    package func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        try base.rename(name, to: target, replacing: replacing)
    }
    package func link(_ name: String, to target: String) throws(SystemFailure) {
        try base.link(name, to: target)
    }
    package func remove(_ name: String) throws(SystemFailure) { try base.remove(name) }
    package func names() throws(SystemFailure) -> [String] { try base.names() }
    package func otherNames() throws(SystemFailure) -> [[UInt8]] { try base.otherNames() }
    package func open(otherName: [UInt8]) throws(SystemFailure) -> any DiskFile {
        try base.open(otherName: otherName)
    }
    package func synchronize() throws(SystemFailure) { try base.synchronize() }
}

/// A file that does as another one does, but for what the type says itself.
package protocol ForwardingFile: DiskFile {
    var base: any DiskFile { get }
}

extension ForwardingFile {
    package func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        try base.read(count, at: offset)
    }
    package func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        try base.write(bytes, at: offset)
    }
    package func data(from offset: Int) -> Int? { base.data(from: offset) }
    package func synchronize() throws(SystemFailure) { try base.synchronize() }
    package func resize(to size: Int) throws(SystemFailure) { try base.resize(to: size) }
    package func makePrivate() throws(SystemFailure) { try base.makePrivate() }
    package func attributes() throws(SystemFailure) -> FileAttributes { try base.attributes() }
    package func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool { try base.tryLock(kind) }
    package func unlock() { base.unlock() }
    package var isLockedForWriting: Bool { base.isLockedForWriting }
    package func takeName(_ name: String) throws(SystemFailure) { try base.takeName(name) }
}
