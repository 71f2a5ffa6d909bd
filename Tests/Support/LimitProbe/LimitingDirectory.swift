import HookedStorage
import TokenVaultPlatform

/// A real directory that runs closures before and after it opens files whose names end in something.
final class LimitingDirectory: ForwardingDirectory {
    let base: any DiskDirectory
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
}
