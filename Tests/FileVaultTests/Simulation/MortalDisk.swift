import HookedStorage
import SystemPackage
import TokenVaultPlatform

/// A process that is killed: after so many operations nothing it does reaches the disk any more, and the
/// locks it held are gone. What it wrote is visible to others, whether synced or not.
final class MortalDisk: Sendable {
    private struct Life {
        var left: Int
        var locked: [any DiskFile] = []
    }

    private let life: Monitor<Life>

    /// Dies after `operations` changes, syncs and locks.
    init(operations: Int) { life = Monitor(Life(left: operations)) }

    var isDead: Bool { life.withLock { $0.left == 0 } }

    func directory(_ base: SimulatedDirectory) -> any DiskDirectory {
        MortalDirectory(base: base, disk: self)
    }

    fileprivate func spend() throws(SystemFailure) {
        let outcome = life.withLock { life -> (died: Bool, files: [any DiskFile]) in
            guard life.left == 0 else {
                life.left -= 1
                return (false, [])
            }
            defer { life.locked = [] }
            return (true, life.locked)
        }
        for file in outcome.files { file.unlock() }
        if outcome.died { throw SystemFailure(.ioError, "killed") }
    }

    fileprivate func remember(_ file: any DiskFile) { life.withLock { $0.locked.append(file) } }

    fileprivate func check() throws(SystemFailure) {
        if isDead { throw SystemFailure(.ioError, "killed") }
    }
}

private final class MortalDirectory: ForwardingDirectory {
    let base: any DiskDirectory
    let disk: MortalDisk

    init(base: SimulatedDirectory, disk: MortalDisk) {
        self.base = base
        self.disk = disk
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        if access == .create { try disk.spend() } else { try disk.check() }
        return MortalFile(base: try base.open(name, access), disk: disk)
    }

    func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        try disk.check()
        return try base.attributes(of: name)
    }

    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        try disk.spend()
        try base.rename(name, to: target, replacing: replacing)
    }

    func link(_ name: String, to target: String) throws(SystemFailure) {
        try disk.spend()
        try base.link(name, to: target)
    }

    func remove(_ name: String) throws(SystemFailure) {
        try disk.spend()
        try base.remove(name)
    }

    func names() throws(SystemFailure) -> [String] {
        try disk.check()
        return try base.names()
    }

    func synchronize() throws(SystemFailure) {
        try disk.spend()
        try base.synchronize()
    }
}

private final class MortalFile: ForwardingFile {
    let base: any DiskFile
    let disk: MortalDisk

    init(base: any DiskFile, disk: MortalDisk) {
        self.base = base
        self.disk = disk
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        try disk.check()
        return try base.read(count, at: offset)
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        try disk.spend()
        try base.write(bytes, at: offset)
    }

    func synchronize() throws(SystemFailure) {
        try disk.spend()
        try base.synchronize()
    }

    func resize(to size: Int) throws(SystemFailure) {
        try disk.spend()
        try base.resize(to: size)
    }

    func attributes() throws(SystemFailure) -> FileAttributes {
        try disk.check()
        return try base.attributes()
    }

    func takeName(_ name: String) throws(SystemFailure) {
        try disk.spend()
        try base.takeName(name)
    }

    func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool {
        try disk.spend()
        let taken = try base.tryLock(kind)
        if taken { disk.remember(base) }
        return taken
    }
}
