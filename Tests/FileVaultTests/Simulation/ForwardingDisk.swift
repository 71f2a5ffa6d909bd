import SystemPackage
import TokenVaultPlatform

/// A directory that does as another one does, but for what the type says itself.
protocol ForwardingDirectory: DiskDirectory {
    var base: any DiskDirectory { get }
}

extension ForwardingDirectory {
    var isRemote: Bool { base.isRemote }
    func isMountPoint(_ name: String) -> Bool { base.isMountPoint(name) }
    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        try base.open(name, access)
    }
    func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        try base.attributes(of: name)
    }
    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        try base.rename(name, to: target, replacing: replacing)
    }
    func link(_ name: String, to target: String) throws(SystemFailure) {
        try base.link(name, to: target)
    }
    func remove(_ name: String) throws(SystemFailure) { try base.remove(name) }
    func names() throws(SystemFailure) -> [String] { try base.names() }
    func otherNames() throws(SystemFailure) -> [[UInt8]] { try base.otherNames() }
    func open(otherName: [UInt8]) throws(SystemFailure) -> any DiskFile {
        try base.open(otherName: otherName)
    }
    func synchronize() throws(SystemFailure) { try base.synchronize() }
}

/// A file that does as another one does, but for what the type says itself.
protocol ForwardingFile: DiskFile {
    var base: any DiskFile { get }
}

extension ForwardingFile {
    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        try base.read(count, at: offset)
    }
    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) { try base.write(bytes, at: offset) }
    func synchronize() throws(SystemFailure) { try base.synchronize() }
    func resize(to size: Int) throws(SystemFailure) { try base.resize(to: size) }
    func makePrivate() throws(SystemFailure) { try base.makePrivate() }
    func attributes() throws(SystemFailure) -> FileAttributes { try base.attributes() }
    func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool { try base.tryLock(kind) }
    func unlock() { base.unlock() }
    func takeName(_ name: String) throws(SystemFailure) { try base.takeName(name) }
}
