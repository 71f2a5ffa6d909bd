import HookedStorage
import SystemPackage
import TokenVaultPlatform

/// A way in which a disk, or the code above it, could be wrong. The crash rig must notice each: a vault on
/// a lying disk is a vault that forgot the step.
enum Lie: String, CaseIterable, Sendable {
    /// `fdatasync` of the vault's files does nothing.
    case fileSyncIgnored
    /// `fsync` of a directory does nothing.
    case directorySyncIgnored
    /// What the state directory gets is on the disk before what was to be synced in the vault.
    case anchorBeforeLog
    /// A name always leads to the file that was opened by it last: a lock on a replaced file looks good.
    case lockOnOldFile
    /// A sync that failed is called again, and believed.
    case failedSyncRetried
}

/// The directories of a disk, lying in one way.
final class LyingDisk: Sendable {
    let lie: Lie
    private let delayed = Monitor([any DiskFile]())

    init(_ lie: Lie) { self.lie = lie }

    func directory(_ base: SimulatedDirectory) -> any DiskDirectory { LyingDirectory(base: base, disk: self) }

    fileprivate func delay(_ file: any DiskFile) { delayed.withLock { $0.append(file) } }

    /// Does the syncs that were put off.
    fileprivate func catchUp() throws(SystemFailure) {
        let files = delayed.withLock { files in
            defer { files = [] }
            return files
        }
        for file in files { try file.synchronize() }
    }
}

private final class LyingDirectory: ForwardingDirectory {
    let base: any DiskDirectory
    let disk: LyingDisk
    let isVault: Bool
    private let opened = Monitor([String: FileAttributes]())

    init(base: SimulatedDirectory, disk: LyingDisk) {
        self.base = base
        self.disk = disk
        isVault = base.index == 0
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        let file = try base.open(name, access)
        let attributes = try file.attributes()
        opened.withLock { $0[name] = attributes }
        return LyingFile(base: file, directory: self)
    }

    func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        let truth = try base.attributes(of: name)
        guard disk.lie == .lockOnOldFile, var answer = truth, let last = opened.withLock({ $0[name] }) else {
            return truth
        }
        answer.identity = last.identity
        return answer
    }

    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        try base.rename(name, to: target, replacing: replacing)
        opened.withLock { $0[target] = $0.removeValue(forKey: name) ?? $0[target] }
    }

    func synchronize() throws(SystemFailure) {
        if disk.lie != .directorySyncIgnored { try base.synchronize() }
    }
}

private final class LyingFile: ForwardingFile {
    let base: any DiskFile
    let directory: LyingDirectory
    private var disk: LyingDisk { directory.disk }

    init(base: any DiskFile, directory: LyingDirectory) {
        self.base = base
        self.directory = directory
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        if disk.lie == .anchorBeforeLog {
            if directory.isVault { try disk.catchUp() }
            try base.write(bytes, at: offset)
            if !directory.isVault {
                try base.synchronize()
                try disk.catchUp()
            }
        } else {
            try base.write(bytes, at: offset)
        }
    }

    func synchronize() throws(SystemFailure) {
        switch disk.lie {
        case .fileSyncIgnored where directory.isVault: break
        case .anchorBeforeLog where directory.isVault: disk.delay(base)
        case .failedSyncRetried:
            do throws(SystemFailure) { try base.synchronize() } catch { try base.synchronize() }
        default: try base.synchronize()
        }
    }
}
