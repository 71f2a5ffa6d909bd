import HookedStorage
import TokenVaultPlatform

/// Runs a closure before every `synchronize` of a file, on the thread that asks for it; what the closure throws,
/// the call fails with.
final class HookedDirectory: ForwardingDirectory {
    typealias Hook = @Sendable () throws(SystemFailure) -> Void

    let base: any DiskDirectory
    private let hook: Hook

    init(_ base: any DiskDirectory, beforeSynchronizing hook: @escaping Hook) {
        self.base = base
        self.hook = hook
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        HookedFile(try base.open(name, access), hook)
    }
}

private final class HookedFile: ForwardingFile {
    let base: any DiskFile
    private let hook: HookedDirectory.Hook

    init(_ base: any DiskFile, _ hook: @escaping HookedDirectory.Hook) {
        self.base = base
        self.hook = hook
    }

    func synchronize() throws(SystemFailure) {
        try hook()
        try base.synchronize()
    }
}
