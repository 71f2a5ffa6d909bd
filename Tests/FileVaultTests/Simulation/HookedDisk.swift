import HookedStorage
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Runs a closure before every `synchronize` of a file, on the thread that asks for it; what the closure throws,
/// the call fails with. Another one runs before the keybags are read.
final class HookedDirectory: ForwardingDirectory {
    typealias Hook = @Sendable () throws(SystemFailure) -> Void

    let base: any DiskDirectory
    private let hook: Hook
    private let keybagHook: @Sendable () -> Void

    init(
        _ base: any DiskDirectory, beforeReadingKeybags keybagHook: @escaping @Sendable () -> Void = {},
        beforeSynchronizing hook: @escaping Hook
    ) {
        self.base = base
        self.hook = hook
        self.keybagHook = keybagHook
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        HookedFile(try base.open(name, access), hook, keybagHook)
    }
}

private final class HookedFile: ForwardingFile {
    let base: any DiskFile
    private let hook: HookedDirectory.Hook
    private let keybagHook: @Sendable () -> Void

    init(
        _ base: any DiskFile, _ hook: @escaping HookedDirectory.Hook,
        _ keybagHook: @escaping @Sendable () -> Void
    ) {
        self.base = base
        self.hook = hook
        self.keybagHook = keybagHook
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        if offset == 0, count >= VaultFormat.pointerStart { keybagHook() }
        return try base.read(count, at: offset)
    }

    func synchronize() throws(SystemFailure) {
        try hook()
        try base.synchronize()
    }
}
