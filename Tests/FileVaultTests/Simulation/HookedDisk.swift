import SystemPackage
import TokenVaultPlatform

/// Runs a closure before every `synchronize` of a file, on the thread that asks for it; what the closure throws,
/// the call fails with.
final class HookedDirectory: DiskDirectory {
    typealias Hook = @Sendable () throws(SystemFailure) -> Void

    private let base: any DiskDirectory
    private let hook: Hook

    init(_ base: any DiskDirectory, beforeSynchronizing hook: @escaping Hook) {
        self.base = base
        self.hook = hook
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        HookedFile(try base.open(name, access), hook)
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
    func synchronize() throws(SystemFailure) { try base.synchronize() }
}

private final class HookedFile: DiskFile {
    private let base: any DiskFile
    private let hook: HookedDirectory.Hook

    init(_ base: any DiskFile, _ hook: @escaping HookedDirectory.Hook) {
        self.base = base
        self.hook = hook
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        try base.read(count, at: offset)
    }
    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) { try base.write(bytes, at: offset) }
    func synchronize() throws(SystemFailure) {
        try hook()
        try base.synchronize()
    }
    func resize(to size: Int) throws(SystemFailure) { try base.resize(to: size) }
    func attributes() throws(SystemFailure) -> FileAttributes { try base.attributes() }
    func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool { try base.tryLock(kind) }
    func unlock() { base.unlock() }
}
