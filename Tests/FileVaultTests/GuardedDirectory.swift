import Glibc
import HookedStorage
import Synchronization
import SystemPackage
import TokenVaultPlatform

/// A real directory as another kind of file system would show it, which keeps count of what is asked of it.
final class GuardedDirectory: ForwardingDirectory {
    /// What was done to the directory or a file in it.
    final class Journal: Sendable {
        private let entries = Mutex<[String]>([])
        private let readers = Mutex<Set<Int32>>([])
        func note(_ entry: String) { entries.withLock { $0.append(entry) } }
        func read() { _ = readers.withLock { $0.insert(ProcessFacts.thread) } }
        var all: [String] { entries.withLock { $0 } }
        var readingThreads: Set<Int32> { readers.withLock { $0 } }
        func forget() {
            entries.withLock { $0 = [] }
            readers.withLock { $0 = [] }
        }
    }

    let journal = Journal()
    let isRemote: Bool
    let base: any DiskDirectory
    private let refusal: Errno?
    private let lockFailure: Errno?

    /// `refusal` is what opening for writing fails with, `lockFailure` what taking a lock fails with.
    init(_ path: FilePath, isRemote: Bool = false, refusal: Errno? = nil, lockFailure: Errno? = nil)
        throws
    {
        base = try PosixDirectory(path)
        self.isRemote = isRemote
        self.refusal = refusal
        self.lockFailure = lockFailure
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        if access != .read {
            if let refusal { throw SystemFailure(refusal, "openat") }
            journal.note(access == .create ? "create" : "open for writing")
        }
        return GuardedFile(try base.open(name, access), journal, lockFailure)
    }
    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        journal.note("rename")
        try base.rename(name, to: target, replacing: replacing)
    }
    func remove(_ name: String) throws(SystemFailure) {
        journal.note("remove")
        try base.remove(name)
    }
    func synchronize() throws(SystemFailure) {
        journal.note("synchronize")
        try base.synchronize()
    }
}

private final class GuardedFile: ForwardingFile {
    let base: any DiskFile
    private let journal: GuardedDirectory.Journal
    private let lockFailure: Errno?

    init(_ base: any DiskFile, _ journal: GuardedDirectory.Journal, _ lockFailure: Errno?) {
        self.base = base
        self.journal = journal
        self.lockFailure = lockFailure
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        journal.read()
        return try base.read(count, at: offset)
    }
    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        journal.note("write")
        try base.write(bytes, at: offset)
    }
    func synchronize() throws(SystemFailure) {
        journal.note("synchronize")
        try base.synchronize()
    }
    func resize(to size: Int) throws(SystemFailure) {
        journal.note("resize")
        try base.resize(to: size)
    }
    func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool {
        if let lockFailure { throw SystemFailure(lockFailure, "fcntl(F_OFD_SETLK)") }
        journal.note("\(kind)")
        return try base.tryLock(kind)
    }
}
