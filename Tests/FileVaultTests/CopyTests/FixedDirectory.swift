import SystemPackage
import TokenVaultPlatform

/// A directory in which no name takes another's place, as where a file is mounted.
final class FixedDirectory: DiskDirectory {
    private let base: PosixDirectory
    private let refusal: Errno

    init(base: PosixDirectory, refusal: Errno) {
        self.base = base
        self.refusal = refusal
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        try base.open(name, access)
    }
    func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        try base.attributes(of: name)
    }
    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        throw SystemFailure(refusal, "renameat")
    }
    func remove(_ name: String) throws(SystemFailure) { try base.remove(name) }
    func names() throws(SystemFailure) -> [String] { try base.names() }
    func synchronize() throws(SystemFailure) { try base.synchronize() }
}
