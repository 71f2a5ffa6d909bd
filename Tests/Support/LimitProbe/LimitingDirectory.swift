import SystemPackage
import TokenVaultPlatform

/// A real directory that runs closures before and after it opens files whose names end in something.
final class LimitingDirectory: DiskDirectory {
    private let base: PosixDirectory
    private let suffix: String
    private let before: @Sendable () -> Void
    private let after: @Sendable () -> Void

    init(
        _ base: PosixDirectory, suffix: String, before: @escaping @Sendable () -> Void,
        after: @escaping @Sendable () -> Void = {}
    ) {
        self.base = base
        self.suffix = suffix
        self.before = before
        self.after = after
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        guard name.hasSuffix(suffix) else { return try base.open(name, access) }
        before()
        defer { after() }
        return try base.open(name, access)
    }
    func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        try base.attributes(of: name)
    }
    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        try base.rename(name, to: target, replacing: replacing)
    }
    func remove(_ name: String) throws(SystemFailure) { try base.remove(name) }
    func names() throws(SystemFailure) -> [String] { try base.names() }
    func synchronize() throws(SystemFailure) { try base.synchronize() }
}
